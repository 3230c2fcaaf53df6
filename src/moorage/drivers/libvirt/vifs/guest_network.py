"""A network of the built-in pool, as ports tell of it; what it is called on hosts follows from what it is."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from moorage.drivers.contract import DriverError
from moorage.drivers.libvirt.vifs.contract import Vif, tap_of

BRIDGE, TUNNEL = "mrg-", "mrt-"
"""How the names of our devices begin; 15 characters is all that a name may have."""
METADATA_ADDRESS = "169.254.169.254"
_HOST_SIDE = "fe"
"""First byte of a tap's own address: one that is higher than any other, so that a bridge never takes it."""


class GuestNetwork(msgspec.Struct, frozen=True, dict=True):
    """The same on every host: a guest that moves finds the same gateway, at the same hardware address."""

    id: str
    cidr: str
    gateway: str
    mtu: int
    dns_servers: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()
    """Beside the default one: where to, and by which router."""

    @property
    def bridge(self) -> str:
        return f"{BRIDGE}{self._digest[:10]}"

    @property
    def tunnel(self) -> str:
        return f"{TUNNEL}{self._digest[:10]}"

    @property
    def tunnel_id(self) -> int:
        """VXLAN's number for it: 24 bits, and not 0."""
        return int(self._digest[10:16], 16) or 1

    @property
    def gateway_mac(self) -> str:
        digits = self._digest[16:26]
        return ":".join(["02", *(digits[place : place + 2] for place in range(0, 10, 2))])

    @property
    def prefix_length(self) -> int:
        return ipaddress.IPv4Network(self.cidr).prefixlen

    @cached_property
    def _digest(self) -> str:
        return hashlib.blake2b(f"{self.id} {self.cidr}".encode(), digest_size=16).hexdigest()


class GuestPort(msgspec.Struct, frozen=True):
    """A port that is plugged on this host, or about to be."""

    vif: Vif
    server_uuid: str
    network: GuestNetwork
    addresses: tuple[str, ...]

    @property
    def host_side_mac(self) -> str:
        """Of the tap itself: were it the guest's, the bridge would keep what is for the guest."""
        return f"{_HOST_SIDE}{self.vif.mac[2:]}"


def read(server_uuid: str, port: Mapping[str, Any]) -> GuestPort:
    """From a port as a driver gets it; DriverError if it is none that a bridge of ours can serve."""
    port_id = str(port["id"])
    subnets = port.get("subnets") or [{}]
    subnet = subnets[0]
    addresses = tuple(str(address) for address in port.get("addresses", ()))
    if subnet.get("ip_version") != 4:
        raise DriverError(f"port {port_id} is of a range that is not IPv4, which no bridge here serves")
    if not subnet.get("gateway_ip") or not addresses:
        raise DriverError(f"the range of port {port_id} leaves no address for a gateway")
    network = GuestNetwork(
        id=str(port["network_id"]),
        cidr=str(subnet["cidr"]),
        gateway=str(subnet["gateway_ip"]),
        mtu=int(port.get("mtu") or 0),
        dns_servers=tuple(subnet.get("dns_nameservers") or ()),
        routes=tuple((route["destination"], route["nexthop"]) for route in subnet.get("host_routes") or ()),
    )
    vif = Vif(port_id, str(port["mac"]), tap_of(port_id), network.mtu)
    return GuestPort(vif, server_uuid, network, addresses)
