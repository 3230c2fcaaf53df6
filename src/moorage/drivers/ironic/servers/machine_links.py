"""The links of a machine, as its guest has to know them. Pure.

A port of Neutron's that is attached to a machine gets the hardware address of that network card, or bond, of
the machine which Ironic has chosen for it: what the network said before is not what the guest sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moorage.drivers.ironic.api.record import MachinePort, MachinePortGroup

LINK_TYPE = "phy"
"""Guests are told of real network cards, however the port is bound."""
_BOND_PROPERTIES = ("miimon", "xmit_hash_policy")
"""Properties of a port group that guests know by a longer name."""


def real(network: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A server's ports, before anybody knows at which cards they are."""
    return [{**port, "vif_type": LINK_TYPE} for port in network]


def seen(
    network: Sequence[Mapping[str, Any]],
    ports: Iterable[MachinePort],
    groups: Iterable[MachinePortGroup],
) -> list[Mapping[str, Any]]:
    """A server's ports, with the addresses of the cards or bonds that they are attached to."""
    cards = list(ports)
    single = {card.vif: card for card in cards if card.vif}
    bonds = {group.vif: group for group in groups if group.vif}
    found: list[Mapping[str, Any]] = []
    for port in real(network):
        vif = str(port["id"])
        if vif in bonds:
            group = bonds[vif]
            members = [card for card in cards if card.portgroup_uuid == group.uuid]
            found.append({**port, "mac": group.address or port.get("mac", ""), "bond": _bond(group, members)})
        elif vif in single:
            found.append({**port, "mac": single[vif].address})
        else:
            found.append(port)
    return found


def _bond(group: MachinePortGroup, members: Sequence[MachinePort]) -> dict[str, Any]:
    """In the words of `network_data.json`."""
    said = {
        name if name.startswith("bond_") else f"bond_{name}": value
        for name, value in group.properties.items()
        if name.startswith("bond_") or name in _BOND_PROPERTIES
    }
    links = [{"id": card.uuid, "mac": card.address} for card in members]
    return {"mode": group.mode or "active-backup", "links": links, "properties": said}
