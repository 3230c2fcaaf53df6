"""Networks and their segments as Neutron knows them, cached for a while."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from moorage.network.contract import HostRoute, PortSubnet
from moorage.network.neutron_link import Json, NeutronFault, NeutronLink

_REMEMBER_SECONDS = 30.0
_MOST = 10_000
_UNCOUNTED = 1
"""Of a subnet that nobody counted there may be an address left."""


@dataclass(frozen=True)
class Subnet:
    id: str
    segment: str | None
    version: int
    told: PortSubnet
    """What a guest with an address of it is told."""


@dataclass(frozen=True)
class NetworkDescription:
    """What does not change about a network while servers boot on it."""

    id: str
    name: str
    subnets: tuple[Subnet, ...]
    names_ports: bool = False
    """Neutron has names in DNS: its own domain's, or that of this network."""
    taggable: bool = False
    mtu: int = 0
    """0: Neutron does not say."""

    @property
    def routed(self) -> bool:
        return any(subnet.segment for subnet in self.subnets)

    def segments(self, subnet_ids: Iterable[str]) -> set[str]:
        """Those of these subnets."""
        wanted = set(subnet_ids)
        return {subnet.segment for subnet in self.subnets if subnet.id in wanted and subnet.segment}

    def told(self, subnet_ids: Iterable[str]) -> list[PortSubnet]:
        """What guests are told of these subnets."""
        wanted = set(subnet_ids)
        return [subnet.told for subnet in self.subnets if subnet.id in wanted]


class NetworkCache:
    def __init__(self, link: NeutronLink) -> None:
        self._link = link
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, NetworkDescription]] = {}
        self._reading: dict[str, threading.Lock] = {}

    def network(self, network_id: str) -> NetworkDescription:
        with self._lock:
            reading = self._reading.setdefault(network_id, threading.Lock())
        with reading:  # many boots want the same network at once, and one of them reads it
            known = self._known.get(network_id)
            if known is not None and time.monotonic() - known[0] < _REMEMBER_SECONDS:
                return known[1]
            return self._read(network_id)

    def _read(self, network_id: str) -> NetworkDescription:
        shown = self._link.show("networks", network_id)
        subnets = self._link.find("subnets", [("network_id", network_id)])
        network = NetworkDescription(
            network_id,
            shown["name"] or network_id,
            tuple(_subnet(row) for row in subnets),
            names_ports=shown.get("dns_domain") is not None,
            taggable="tags" in shown,
            mtu=shown.get("mtu") or 0,
        )
        with self._lock:
            if len(self._known) >= _MOST:
                self._known.clear()
                self._reading.clear()
            self._known[network_id] = (time.monotonic(), network)
        return network

    def open_segments(self, network: NetworkDescription) -> list[str]:
        """Those that have an address left of each version that they have at all.

        From Neutron's own count: what it reports to Placement goes astray now and then.
        """
        free = self._free(network)
        room: dict[tuple[str, int], int] = defaultdict(int)
        for subnet in network.subnets:
            if subnet.segment:
                room[subnet.segment, subnet.version] += max(0, free.get(subnet.id, _UNCOUNTED))
        full = {segment for (segment, _), left in room.items() if left == 0}
        return sorted({segment for segment, _ in room} - full)

    def _free(self, network: NetworkDescription) -> dict[str, int]:
        """Addresses left by subnet; nothing is known where Neutron does not count them."""
        try:
            told = self._link.show("network-ip-availabilities", network.id)
        except NeutronFault as fault:
            if fault.status != 404:
                raise
            return {}
        return {
            row["subnet_id"]: int(row["total_ips"]) - int(row["used_ips"])
            for row in told["subnet_ip_availability"]
        }


def _subnet(row: Json) -> Subnet:
    told = PortSubnet(
        cidr=row.get("cidr") or "",
        ip_version=row["ip_version"],
        gateway_ip=row.get("gateway_ip") or "",
        dns_nameservers=row.get("dns_nameservers") or [],
        host_routes=[
            HostRoute(route["destination"], route["nexthop"]) for route in row.get("host_routes") or []
        ],
        enable_dhcp=bool(row.get("enable_dhcp")),
        ipv6_address_mode=row.get("ipv6_address_mode") or "",
    )
    return Subnet(row["id"], row.get("segment_id"), row["ip_version"], told)
