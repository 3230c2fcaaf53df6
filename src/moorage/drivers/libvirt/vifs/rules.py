"""The rules of nftables for guests of the built-in network, in two tables of our own. Pure.

Both are always written as a whole, in one transaction, from all ports that are plugged: there is no moment
without them, and nothing is left over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moorage.drivers.libvirt.vifs.guest_network import METADATA_ADDRESS, GuestNetwork, GuestPort

TABLE = "moorage"
FAMILIES = ("bridge", "inet")

_BRIDGE_CHAINS = """
    chain arriving {
        type filter hook prerouting priority filter; policy accept;
        iifname @taps jump from_guest
        iifname @tunnels jump from_tunnel
    }
    chain from_guest {
        iifname . ether saddr != @macs drop
        arp saddr ip 0.0.0.0 accept
        ether type arp iifname . arp saddr ether . arp saddr ip != @sources drop
        ether type arp accept
        ether type 0x8035 accept
        ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept
        ether type ip iifname . ether saddr . ip saddr != @sources drop
        ether type ip udp sport 67 drop
        ether type ip accept
        drop
    }
    chain from_tunnel {
        ether saddr @gateway_macs drop
        arp saddr ip @gateways drop
        udp dport { 67, 68 } drop
    }
    chain leaving {
        type filter hook postrouting priority filter; policy accept;
        oifname @tunnels ether saddr @gateway_macs drop
        oifname @tunnels arp daddr ip @gateways drop
        oifname @tunnels udp dport { 67, 68 } drop
    }
"""
_INET_CHAINS = f"""
    chain input {{
        type filter hook input priority filter; policy accept;
        iifname @bridges jump from_guest
    }}
    chain from_guest {{
        ct state established,related accept
        udp dport {{ 53, 67 }} accept
        tcp dport 53 accept
        ip daddr {METADATA_ADDRESS} tcp dport 80 accept
        icmp type echo-request accept
        drop
    }}
    chain forward {{
        type filter hook forward priority filter; policy accept;
        oifname @bridges iifname != @bridges ct state established,related accept
        oifname @bridges iifname != @bridges drop
    }}
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        ip saddr @networks ip daddr != @networks oifname != @bridges masquerade
    }}
"""


def ruleset(ports: Sequence[GuestPort]) -> str:
    """What `nft -f` makes of it: our tables as they shall be, whatever they were."""
    if not ports:
        return _without_tables()
    networks = sorted({port.network for port in ports}, key=lambda network: network.bridge)
    return "\n".join(
        [
            _without_tables(),
            f"table bridge {TABLE} {{",
            *_bridge_sets(networks, ports),
            _BRIDGE_CHAINS,
            "}",
            f"table inet {TABLE} {{",
            _set("bridges", "ifname", [_text(network.bridge) for network in networks]),
            _set(
                "networks", "ipv4_addr", [network.cidr for network in networks], "flags interval; auto-merge;"
            ),
            _INET_CHAINS,
            "}",
            "",
        ]
    )


def _without_tables() -> str:
    """To delete what is not there is an error, so it is added first."""
    return "\n".join(
        line
        for family in FAMILIES
        for line in (f"table {family} {TABLE} {{}}", f"delete table {family} {TABLE}")
    )


def _bridge_sets(networks: Sequence[GuestNetwork], ports: Sequence[GuestPort]) -> list[str]:
    macs = [f"{_text(port.vif.tap)} . {port.vif.mac}" for port in ports]
    sources = [
        f"{_text(port.vif.tap)} . {port.vif.mac} . {address}" for port in ports for address in port.addresses
    ]
    return [
        _set("taps", "ifname", [_text(port.vif.tap) for port in ports]),
        _set("macs", "ifname . ether_addr", macs),
        _set("sources", "ifname . ether_addr . ipv4_addr", sources),
        _set("tunnels", "ifname", [_text(network.tunnel) for network in networks]),
        _set("gateways", "ipv4_addr", {network.gateway for network in networks}),
        _set("gateway_macs", "ether_addr", {network.gateway_mac for network in networks}),
    ]


def _set(name: str, kind: str, elements: Iterable[str], flags: str = "") -> str:
    return f"    set {name} {{ type {kind}; {flags} elements = {{ {', '.join(sorted(elements))} }} }}"


def _text(name: str) -> str:
    return f'"{name}"'
