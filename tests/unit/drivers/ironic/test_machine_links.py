"""What a guest is told of the network cards of its machine."""

from __future__ import annotations

from typing import Any

from moorage.drivers.guest_metadata import network_data
from moorage.drivers.ironic.api.record import MachinePort, MachinePortGroup
from moorage.drivers.ironic.servers import machine_links

PORTS: list[dict[str, Any]] = [
    {"id": "front", "mac": "fa:16:3e:00:00:01", "vif_type": "unbound"},
    {"id": "back", "mac": "fa:16:3e:00:00:02", "vif_type": "unbound"},
]


def attached(port: str) -> dict[str, str]:
    return {"tenant_vif_port_id": port}


def test_a_port_has_the_address_of_the_card_that_it_is_at() -> None:
    cards = [MachinePort("card", "52:54:00:00:00:01", internal_info=attached("back"))]
    links = network_data(machine_links.seen(PORTS, cards, []))["links"]
    assert [link["ethernet_mac_address"] for link in links] == ["fa:16:3e:00:00:01", "52:54:00:00:00:01"]
    assert {link["type"] for link in links} == {"phy"}


def test_a_port_at_several_cards_is_a_bond_of_them() -> None:
    group = MachinePortGroup("bond", None, "802.3ad", {"miimon": "100"}, attached("front"))
    cards = [MachinePort(f"card-{number}", f"52:54:00:00:00:0{number}", "bond") for number in (1, 2)]
    front, back, *members = network_data(machine_links.seen(PORTS, cards, [group]))["links"]
    assert (front["type"], front["bond_mode"], front["bond_miimon"]) == ("bond", "802.3ad", "100")
    assert front["ethernet_mac_address"] == "fa:16:3e:00:00:01", "a group without an address has the port's"
    assert front["bond_links"] == [member["id"] for member in members] == ["card-1", "card-2"]
    assert (back["type"], {member["type"] for member in members}) == ("phy", {"phy"})
