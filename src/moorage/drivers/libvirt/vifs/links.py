"""Bridges, tunnels and taps of the built-in network, as the kernel has them on this host.

Each call says what shall be, and does what is missing: after a crash in between, or after a reboot, the next
one goes on. All of our devices carry our mark, by which those are found that nobody needs any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from moorage.drivers.libvirt.vifs.guest_network import METADATA_ADDRESS, GuestNetwork, GuestPort
from moorage.drivers.libvirt.vifs.system_commands import SystemCommands

_EVERYBODY = "00:00:00:00:00:00"
"""In a tunnel's table: where to send what is for all, or for somebody unknown."""


@dataclass(frozen=True)
class Tunnels:
    """How this host reaches the same networks on others."""

    address: str = ""
    """This host's own; empty: there are no tunnels."""
    peers: tuple[str, ...] = ()
    port: int = 4789


class Links:
    def __init__(self, commands: SystemCommands, host: str, tunnels: Tunnels) -> None:
        self._commands = commands
        self._mark = f"moorage {host}"
        self._tunnels = tunnels

    def ensure_network(self, network: GuestNetwork) -> None:
        """A bridge that is the guests' gateway, and its tunnel to other hosts if there are any."""
        there = self._there()
        if network.bridge not in there:
            self._ip(
                f"link add {network.bridge} address {network.gateway_mac} type bridge "
                "forward_delay 0 stp_state 0 mcast_snooping 0"
            )
        elif there[network.bridge].get("address") != network.gateway_mac:
            # Only then: even if it is the same, the host forgets where its guests are, and drops what it is
            # about to send them.
            self._ip(f"link set {network.bridge} address {network.gateway_mac}")
        self._ip(
            f"link set {network.bridge} mtu {network.mtu or 1500} "
            f"addrgenmode none alias {_quoted(self._mark)} up",
            f"addr replace {network.gateway}/{network.prefix_length} dev {network.bridge}",
            f"addr replace {METADATA_ADDRESS}/32 dev {network.bridge}",
        )
        if self._tunnels.address:
            self._ensure_tunnel(network, there)
        self._commands.run("sysctl", "-q", "-w", "net.ipv4.ip_forward=1")

    def _ensure_tunnel(self, network: GuestNetwork, there: dict[str, Any]) -> None:
        known = there.get(network.tunnel)
        if known is not None and not self._leads_from_here(known):
            self.remove(network.tunnel)
            known = None
        if known is None:
            self._ip(
                f"link add {network.tunnel} type vxlan id {network.tunnel_id} "
                f"local {self._tunnels.address} dstport {self._tunnels.port}"
            )
        self._ip(
            f"link set {network.tunnel} mtu {network.mtu or 1450} master {network.bridge} "
            f"addrgenmode none alias {_quoted(self._mark)} up"
        )
        self._set_peers(network.tunnel)

    def _leads_from_here(self, link: dict[str, Any]) -> bool:
        told = link.get("linkinfo", {}).get("info_data", {})
        return (told.get("local"), told.get("port")) == (self._tunnels.address, self._tunnels.port)

    def _set_peers(self, tunnel: str) -> None:
        """What is for all goes to each peer by itself: no multicast is needed between the hosts."""
        listed = _read(self._commands.run("bridge", "-j", "fdb", "show", "dev", tunnel))
        known = {entry["dst"] for entry in listed if entry["mac"] == _EVERYBODY and "dst" in entry}
        wanted = set(self._tunnels.peers) - {self._tunnels.address}
        for verb, peers in (("append", wanted - known), ("del", known - wanted)):
            for peer in sorted(peers):
                self._commands.run("bridge", "fdb", verb, _EVERYBODY, "dev", tunnel, "dst", peer)

    def ensure_tap(self, port: GuestPort) -> None:
        vif = port.vif
        if vif.tap not in self._there():
            self._ip(f"tuntap add dev {vif.tap} mode tap")
        self._ip(
            f"link set {vif.tap} address {port.host_side_mac} mtu {port.network.mtu or 1500} "
            f"master {port.network.bridge} addrgenmode none alias {_quoted(self._mark)} up"
        )

    def remove(self, name: str) -> None:
        """Gone already: nothing happens."""
        if name in self._there():
            self._ip(f"link del {name}")

    def ours(self) -> set[str]:
        """The devices that carry our mark."""
        return {name for name, link in self._there().items() if link.get("ifalias") == self._mark}

    def _there(self) -> dict[str, Any]:
        """By name."""
        listed = _read(self._commands.run("ip", "-j", "-d", "link", "show"))
        return {link["ifname"]: link for link in listed if link}

    def _ip(self, *lines: str) -> None:
        self._commands.run("ip", "-batch", "-", stdin="\n".join([*lines, ""]))


def _read(text: str) -> Sequence[dict[str, Any]]:
    """`ip` and `bridge` print nothing at all where there is nothing."""
    return msgspec.json.decode(text, type=list[dict[str, Any]]) if text.strip() else []


def _quoted(text: str) -> str:
    return f'"{text}"'
