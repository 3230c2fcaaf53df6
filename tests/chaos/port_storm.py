"""Boots and deletes on a real Neutron while Moorage is killed at random; then Neutron's books are checked."""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from openstack.exceptions import NotFoundException

from tests.integration.openstack_site import PATIENCE, Site
from tests.support.processes import wait_until

SETTLED = ("ACTIVE", "ERROR")
_MOST_SERVERS = 6
_MOST_LISTINGS = 20
_BROUGHT_SHARE = 0.3


class PortStorm:
    """A user who makes and deletes servers, on networks and on ports of their own, and a killer.

    When to kill is a matter of how far Neutron has come with the ports, not of time: a busy machine is hit in
    the middle of its work as well.
    """

    def __init__(self, site: Site, networks: list[Any], chance: random.Random) -> None:
        self._site = site
        self._networks = networks
        self._chance = chance
        self._brought: set[str] = set()
        self.kills = 0

    def rage(self, seconds: float) -> None:
        """Life after life, at least one, until the time is over; then one that lasts."""
        deadline = time.monotonic() + seconds
        while not self.kills or time.monotonic() < deadline:
            self._live()
            self._site.kill()
            self.kills += 1
            self._site.start()
        wait_until(self._at_rest, "every server to settle", PATIENCE)

    def _live(self) -> None:
        """Some servers go, some come; how far all that gets is chance."""
        servers = list(self._site.demo.compute.servers(details=False))
        surplus = max(0, len(servers) - _MOST_SERVERS // 2)
        for server in self._chance.sample(servers, self._chance.randint(surplus, len(servers))):
            self._site.demo.compute.delete_server(server)
        wishes = {}
        for _ in range(self._chance.randint(1, _MOST_SERVERS // 2)):
            wanted = self._wishes()
            wishes[self._site.boot(wanted).id] = wanted
        target = self._chance.randint(0, 2 * sum(map(len, wishes.values())))
        print(f"kill at {target}")
        wait_until(lambda: self._progress(set(wishes)) >= target or self._at_rest(), "progress", PATIENCE)
        time.sleep(self._chance.uniform(0, 0.2))

    def _wishes(self) -> list[dict[str, str]]:
        wishes: list[dict[str, str]] = [{"uuid": network.id} for network in self._networks]
        if self._chance.random() < _BROUGHT_SHARE:
            port = self._site.demo.network.create_port(network_id=self._networks[0].id)
            self._brought.add(port.id)
            wishes.append({"port": port.id})
        return wishes

    def _progress(self, server_uuids: set[str]) -> int:
        """One for each port of these servers, two once it is bound."""
        ports = self._ports()
        return sum(1 + bool(port.binding_host_id) for port in ports if port.device_id in server_uuids)

    def _ports(self) -> list[Any]:
        """From the beginning, if the port at the end of a page was deleted before the next was asked for."""
        for _ in range(_MOST_LISTINGS):
            with suppress(NotFoundException):
                return list(self._site.admin.network.ports())
        raise AssertionError(f"{_MOST_LISTINGS} times a port went while ports were listed")

    def _at_rest(self) -> bool:
        servers = self._site.admin.compute.servers(all_projects=True)
        return all(server.status in SETTLED and not server.task_state for server in servers)

    def differences(self) -> list[str]:
        """Where Neutron's ports are not exactly those of the servers that live."""
        servers = {server.id: server for server in self._site.admin.compute.servers(all_projects=True)}
        ports = self._ports()
        count = Counter(port.device_id for port in ports if port.device_id not in ("", *servers))
        wrong = [f"{number} ports of {uuid}, which is gone" for uuid, number in count.items()]
        wrong += [f"server {uuid} failed: {one.fault}" for uuid, one in servers.items() if one.fault]
        for uuid in servers:
            made = [port for port in ports if port.device_id == uuid and port.id not in self._brought]
            if len(made) != len(self._networks):
                wrong.append(f"server {uuid} has {len(made)} ports that were made for it")
        mine = len(list(self._site.demo.compute.servers(details=False)))
        counted = self._site.demo.compute.get_limits().absolute.instances_used
        if counted != mine:
            wrong.append(f"the quota counts {counted} servers where there are {mine}")
        return wrong + [
            f"port {port.id} is bound at {port.binding_host_id!r}"
            for port in ports
            if port.device_id in servers or port.id in self._brought
            if port.binding_host_id != (servers[port.device_id].compute_host if port.device_id else "")
        ]

    def clean_up(self) -> None:
        """What users brought is still there, and theirs to delete."""
        self._site.delete(*self._site.demo.compute.servers())
        for port_id in self._brought:
            port = self._site.demo.network.get_port(port_id)
            assert (port.device_id, port.device_owner) == ("", "")
            self._site.demo.network.delete_port(port)
