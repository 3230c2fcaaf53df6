"""Do the books of a cloud of real guests balance? What the API shows, held against what is on its hosts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.cloud_books import CloudBooks, Difference, Shown
from tests.lab.libvirt.hosts import LibvirtHost
from tests.support.guest_deployment import GuestDeployment

_RUNS = {"ACTIVE": True, "RESCUE": True, "PAUSED": True, "SHUTOFF": False, "SUSPENDED": False}


@dataclass(frozen=True)
class OnHost:
    """All that a host has of servers."""

    host: str
    running: frozenset[str]
    """Servers that there is a process of QEMU for."""
    domains: frozenset[str]
    directories: frozenset[str]
    ports: dict[str, str]
    """The server of each tap, as the agent remembers it."""
    devices: frozenset[str]
    """Taps that are there."""
    filtered: frozenset[str]
    """Taps that there are rules for."""
    services: int
    """Processes that serve networks."""
    bridges: int
    unfinished: tuple[str, ...]
    """Downloads, copies of disks and pools that nobody goes on with."""

    @classmethod
    def of(cls, cloud: GuestDeployment, host: LibvirtHost) -> OnHost:
        instances = cloud.lab.private(host.name)
        links = [line.split()[0].partition("@")[0] for line in host.run("ip", "-br", "link").splitlines()]
        rules = host.run("nft", "-j", "list", "ruleset")
        taps = frozenset(name for name in links if name.startswith("tap"))
        processes = host.run("ps", "-e", "-o", "comm=").split()
        return cls(
            host=host.name,
            running=frozenset(host.guest_pids()),
            domains=frozenset(host.run("virsh", "list", "--all", "--uuid").split()),
            directories=frozenset(path.name for path in instances.iterdir() if path.name != "_base"),
            ports=_ports(cloud.directory / host.name / "vifs" / "built-in"),
            devices=taps,
            filtered=frozenset(_filtered(rules)),
            services=processes.count("dnsmasq"),
            bridges=sum(name.startswith("mrg-") for name in links),
            unfinished=(
                *(path.name for path in (instances / "_base").glob("*.part")),
                *(path.name for path in instances.glob("*/.*")),
                *host.run("virsh", "pool-list", "--all", "--name").split(),
            ),
        )

    def differences(self, shown: Sequence[Shown]) -> list[Difference]:
        here = {server.uuid for server in shown}
        running = {server.uuid for server in shown if _RUNS.get(server.status)}
        unclear = {server.uuid for server in shown if server.status not in _RUNS}
        networks = 1 if here else 0
        pairs: list[tuple[str, object, object]] = [
            ("guests", self.running - unclear, running),
            ("domains", self.domains, here),
            ("directories", self.directories, here),
            ("ports of", frozenset(self.ports.values()), here),
            ("taps", self.devices, frozenset(self.ports)),
            ("rules for", self.filtered, self.devices),
            ("dnsmasq", self.services, networks),
            ("bridges", self.bridges, networks),
            ("unfinished", self.unfinished, ()),
        ]
        return [
            f"{self.host} has {what} {_told(found)}, not {_told(wanted)}"
            for what, found, wanted in pairs
            if found != wanted
        ]


class GuestBooks(CloudBooks):
    def __init__(self, cloud: GuestDeployment) -> None:
        super().__init__(cloud)
        self._cloud = cloud

    def on_hosts(self) -> list[OnHost]:
        return [OnHost.of(self._cloud, host) for host in self._hosts_here()]

    def twice(self) -> list[str]:
        """Servers that run on two hosts, at both of two looks: one that moves live between them has a process
        on each, one of which stands still, and changes over in a moment."""
        looks = [Counter(uuid for host in self._hosts_here() for uuid in _set_going(host)) for _ in range(2)]
        return [uuid for uuid in looks[0] if all(look[uuid] > 1 for look in looks)]

    def _hosts_here(self) -> list[LibvirtHost]:
        return list(self._cloud.lab.hosts.values())

    def _hosts(self, placed: Sequence[Shown]) -> list[Difference]:
        found = self.on_hosts()
        by_host = {one.host: [server for server in placed if server.host == one.host] for one in found}
        images = self._cloud.get("/image/v2/images?limit=1000")["images"]
        return [
            *(difference for one in found for difference in one.differences(by_host[one.host])),
            *(f"{uuid} runs twice" for uuid in self.twice()),
            *(
                f"image {image['id']} is {image['status']} for ever"
                for image in images
                if image["name"] == SNAPSHOT and image["status"] != "active"
            ),
        ]


SNAPSHOT = "snapshot"
"""Name of all snapshots that are made here."""


def _set_going(host: LibvirtHost) -> set[str]:
    """Guests whose processors run; what libvirt does not know of is taken for such."""
    paused = host.run("virsh", "list", "--state-paused", "--uuid", check=False).split()
    return set(host.guest_pids()) - set(paused)


def _ports(records: Path) -> dict[str, str]:
    found = [json.loads(path.read_bytes()) for path in records.glob("*.json")]
    return {record["vif"]["tap"]: record["server_uuid"] for record in found}


def _filtered(rules: str) -> list[str]:
    """The elements of the set that says which devices are guests'."""
    listed = json.loads(rules or "{}").get("nftables", [])
    return [
        str(element)
        for entry in listed
        if entry.get("set", {}).get("name") == "taps"
        for element in entry["set"].get("elem", [])
    ]


def _told(value: object) -> object:
    return sorted(value) if isinstance(value, set | frozenset) else value
