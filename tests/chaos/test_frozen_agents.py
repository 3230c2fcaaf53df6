"""Agents of an Ironic freeze in the middle of a call, are taken over from, and wake up: the call comes late.

Meanwhile its server was deleted, and another tenant's server got the machine. In the end nothing is deployed
for nobody, no config drive has met a foreign machine, and what is in use was never touched.

`CHAOS_SCHEDULES` asks for more, as `make chaos` does; `CHAOS_SEED` repeats a choice.
"""

from __future__ import annotations

import base64
import os
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
import requests

from tests.integration.ironic.late import secret_on
from tests.integration.ironic.lines import port_of
from tests.integration.ironic.site import MetalShape, Site, running
from tests.lab.ironic.nodes import Nodes
from tests.support import debian
from tests.support.deployment import ADMIN
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.processes import wait_until
from tests.support.profiles import Settings

SCHEDULES = int(os.environ.get("CHAOS_SCHEDULES", "1"))
_BOOTS = 10
SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
HOSTS = ("a-1", "a-2")
IN_BOOT = (
    Fault(method="PATCH", body_has=b"display_name"),
    Fault(method="GET", path="/validate"),
    Fault(method="PUT", path="/states/provision", body_has=b"active"),
    Fault(method="PATCH", body_has=b"protected_reason"),
    Fault(method="POST", path="/vifs"),
)
IN_DELETE = (
    Fault(method="PATCH", body_has=b"protected"),
    Fault(method="PUT", path="/states/provision", body_has=b"deleted"),
)
RESERVING = (Fault(method="POST", path="/allocations"), Fault(method="GET", path="/allocations/"))


@dataclass(frozen=True)
class ProxiedShape(MetalShape):
    """Each host has a line of its own to Ironic."""

    lines: dict[str, FaultyProxy] = field(default_factory=dict)
    nodes: int = 2

    @property
    def hosts(self) -> tuple[str, ...]:
        return HOSTS

    def of(self, host: str, selection: str = "scheduler") -> Settings:
        endpoint = f"http://127.0.0.1:{self.lines[host].port}"
        return self.serving(
            endpoint=endpoint, partition_key="a", node_selection=selection, sweep_grace="3", retries="100"
        )


def shaped(metal: Nodes) -> ProxiedShape:
    lines = {host: FaultyProxy(port_of(metal)) for host in HOSTS}
    for line in lines.values():
        line.start()
    return ProxiedShape(ironic_url=metal.url, lines=lines)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two machines: of those that one server leaves, the next gets the only one."""
    try:
        with running(tmp_path_factory.mktemp("frozen"), {"a": 2}, shaped) as made:
            yield made
    except debian.Unavailable as error:
        pytest.skip(str(error))


class Freeze:
    def __init__(self, site: Site, call: Fault) -> None:
        self.site = site
        self.metal = site.metal
        self.call = call
        assert isinstance(site.shape, ProxiedShape)
        self.lines = site.shape.lines
        self.late = threading.Event()

    def boot(self, name: str) -> str:
        secret = base64.b64encode(f"the secret of {name}".encode()).decode()
        return self.site.boot(name, user_data=secret, config_drive=True)

    def hold(self) -> None:
        for line in self.lines.values():
            line.fail(replace(self.call, works=True, times=1, until=self.late))

    def struck(self) -> str:
        """The host whose call is held."""
        wait_until(lambda: any(line.struck for line in self.lines.values()), f"the call {self.call}", 90)
        victim = next(host for host, line in self.lines.items() if line.struck)
        for host, line in self.lines.items():
            if host != victim:
                line.fail(None)
        return victim

    def delete(self, server: str) -> None:
        url = f"{self.site.cloud.urls[0]}/v2.1/servers/{server}"
        assert requests.delete(url, headers=ADMIN, timeout=30).status_code == 204

    def happen(self) -> None:
        filler = self.boot("filler")
        self.site.wait(filler, "ACTIVE")
        deployed_at = self.node_of(filler)["provision_updated_at"]
        if self.call in IN_DELETE:
            left = self.boot("left")
            self.site.wait(left, "ACTIVE")
            self.hold()
            self.delete(left)
            victim = self.struck()
        else:
            self.hold()
            left = self.boot("left")
            victim = self.struck()
        agent = self.site.cloud.agents[victim]
        agent.freeze()
        try:
            if self.call not in IN_DELETE:
                self.delete(left)
            wait_until(lambda: victim not in self.site.cloud.hosts_up(), "it to count as down", 60)
            wait_until(partial(self.site.is_gone, left), "the delete", 120)
            wait_until(lambda: self.wrong({filler}) == [], "the machine to be left", 120)
            server = self.boot_next()
            self.late.set()
        finally:
            self.late.set()
            agent.thaw()
        wait_until(lambda: victim in self.site.cloud.hosts_up(), "it to be back", 60)
        wait_until(lambda: self.wrong({filler, server}) == [], "all to be in order", 90)
        assert self.node_of(filler)["provision_updated_at"] == deployed_at, "it was never touched"
        for name, one in (("filler", filler), ("next", server)):
            node = self.node_of(one)["uuid"]
            assert secret_on(self.site.cloud.database, node) == f"the secret of {name}"
            assert self.site.show(one)["status"] == "ACTIVE"
        self.site.delete(filler, server)
        wait_until(lambda: self.wrong(set()) == [], "all to be free", 90)
        self.site.wait_for_room()

    def is_decided(self, server: str) -> bool:
        return self.site.show(server)["status"] in ("ACTIVE", "ERROR")

    def boot_next(self) -> str:
        """A machine that was just left may be offered before its host has seen that it is cleaned."""
        for _ in range(_BOOTS):
            self.site.wait_for_room()
            server = self.boot("next")
            wait_until(partial(self.is_decided, server), "a decision", 120)
            found = self.site.show(server)
            if found["status"] == "ACTIVE":
                return server
            assert "No valid host was found" in found["fault"]["message"], found
            self.delete(server)
        raise AssertionError("no machine was ever offered")

    def node_of(self, server: str) -> dict[str, Any]:
        return next(node for node in self.metal.all().values() if node["instance_uuid"] == server)

    def wrong(self, living: set[str]) -> list[dict[str, Any]]:
        """Nodes that are neither free nor the machine of a server that lives, and reservations for nobody."""
        nodes = self.metal.all().values()
        free = [
            one for one in nodes if one["provision_state"] == "available" and one["instance_uuid"] is None
        ]
        used = [one for one in nodes if one["instance_uuid"] in living and one["provision_state"] == "active"]
        reserved = self.metal.ask("GET", "allocations")["allocations"]
        missing = living - {str(one["instance_uuid"]) for one in used}
        return [
            *(one for one in nodes if one not in free and one not in used),
            *(one for one in reserved if one["uuid"] not in living),
            *({"missing": one} for one in missing),
        ]


def schedules(chance: random.Random, calls: tuple[Fault, ...]) -> list[Fault]:
    return chance.sample(calls, min(len(calls), SCHEDULES))


@pytest.mark.timeout(3600)
def test_an_agent_that_freezes_in_a_call_does_no_harm_when_it_wakes_up(site: Site) -> None:
    print(f"CHAOS_SEED={SEED}")
    for call in schedules(random.Random(SEED), IN_BOOT + IN_DELETE):
        print(f"frozen in {named(call)}")
        Freeze(site, call).happen()


def named(call: Fault) -> str:
    return f"{call.method} {call.path} {call.body_has.decode()}"


@pytest.mark.timeout(3600)
def test_neither_does_one_that_reserves_machines(site: Site) -> None:
    print(f"CHAOS_SEED={SEED}")
    assert isinstance(site.shape, ProxiedShape)
    for host in HOSTS:
        site.cloud.agents[host].end()
        site.cloud.configure_agent(host, site.shape.of(host, "reservation"))
        site.cloud.agents[host].start()
    wait_until(lambda: set(site.owners()) == set(HOSTS), "the nodes to become pools", 90)
    site.wait_for_room()
    for call in schedules(random.Random(SEED), IN_BOOT + RESERVING + IN_DELETE):
        print(f"frozen in {named(call)}")
        Freeze(site, call).happen()
