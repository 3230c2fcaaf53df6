"""What Neutron is told of ports."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.network import neutron_ports
from moorage.network.contract import Binding, NetworkError, PortGroup, PortNeeds, PortRecord, PortRequest
from moorage.network.network_cache import NetworkDescription

ORDER = PortRequest("server-1", "red", "web", zone="west", hostname="Web-1")
NAMING = NetworkDescription("net-1", "plain", (), names_ports=True, taggable=True)
PLAIN = NetworkDescription("net-1", "plain", ())
FREE: dict[str, Any] = {"id": "port-1", "dns_name": ""}


def record(**fields: Any) -> PortRecord:
    return PortRecord("port-1", "net-1", "plain", True, **fields)


def wide(**fields: Any) -> PortRecord:
    """One that needs bandwidth."""
    group = PortGroup("g1", {"NET_BW_EGR_KILOBIT_PER_SEC": 600})
    return record(needs=PortNeeds(groups=[group]), profile={"trusted": True}, **fields)


def at(host: str, **providers: list[str]) -> Binding:
    return Binding("server-1", [], host, "default", providers=providers)


def test_a_new_port_says_whose_it_is() -> None:
    made = neutron_ports.new(ORDER, {"uuid": "net-1"}, 2, NAMING)
    assert made["device_id"] == "server-1"
    assert made["name"] == "web 2"
    assert made["tags"] == ["moorage", "moorage-server=server-1"]
    assert made["dns_name"] == "Web-1"


def test_a_neutron_without_names_and_tags_is_not_told_any() -> None:
    made = neutron_ports.new(ORDER, {"uuid": "net-1"}, 1, PLAIN)
    assert not {"tags", "dns_name"} & set(made)


def test_a_brought_port_gets_the_server_s_name_and_loses_it_again() -> None:
    assert neutron_ports.taking(ORDER, FREE, NAMING)["dns_name"] == "Web-1"
    assert neutron_ports.given_back({**FREE, "dns_name": "web-1"}, record(named=True))["dns_name"] == ""


def test_a_brought_port_keeps_the_name_that_it_has() -> None:
    own = {**FREE, "dns_name": "web-1"}
    assert "dns_name" not in neutron_ports.taking(ORDER, own, NAMING)
    assert "dns_name" not in neutron_ports.given_back(own, record())
    with pytest.raises(NetworkError, match="its dns_name is mail"):
        neutron_ports.taking(ORDER, {**FREE, "dns_name": "mail"}, NAMING)


def test_who_serves_a_port_is_told_with_what_it_came_with() -> None:
    told = neutron_ports.profile(at("host-1", _g1=["bridge-1"]), wide())
    assert told == {"trusted": True, "allocation": {"g1": "bridge-1"}}


def test_a_port_that_comes_back_is_served_by_whom_it_was_before() -> None:
    port = wide()
    for binding in (at("host-1", _g1=["bridge-1"]), at("host-2", _g1=["bridge-2"])):
        port = msgspec.structs.replace(port, served=neutron_ports.served(binding, port))
    assert neutron_ports.profile(at("host-1"), port)["allocation"] == {"g1": "bridge-1"}
    back = msgspec.structs.replace(port, served=neutron_ports.served(at("host-1"), port))
    assert neutron_ports.profile(at("host-2"), back)["allocation"] == {"g1": "bridge-2"}


def test_only_the_two_hosts_of_a_move_are_remembered() -> None:
    port = wide()
    for number in range(5):
        binding = at(f"host-{number}", _g1=[f"bridge-{number}"])
        port = msgspec.structs.replace(port, served=neutron_ports.served(binding, port))
    assert port.served == {"host-3": {"g1": "bridge-3"}, "host-4": {"g1": "bridge-4"}}


def test_what_a_segment_or_a_bridge_gave_goes_with_the_host() -> None:
    assert neutron_ports.without_host(FREE, record()) == {"binding:host_id": ""}
    assert neutron_ports.without_host(FREE, record(deferred=True))["fixed_ips"] == []
    assert neutron_ports.without_host(FREE, wide())["binding:profile"] == {"trusted": True}


def test_a_port_that_was_a_machine_s_is_none_for_machines_any_more() -> None:
    port = {**FREE, "binding:vnic_type": "baremetal"}
    assert neutron_ports.given_back(port, record(came_as="normal"))["binding:vnic_type"] == "normal"
    for kept in (record(came_as="baremetal"), record(), None):
        assert "binding:vnic_type" not in neutron_ports.given_back(port, kept)


def test_both_forms_of_a_resource_request_are_understood() -> None:
    wanted: dict[str, Any] = {
        "resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 600},
        "required": ["CUSTOM_PHYSNET_1"],
    }
    extended = {"request_groups": [{"id": "g1", **wanted}], "same_subtree": ["g1"]}
    needs = neutron_ports.resources({"id": "port-1", "resource_request": extended})
    assert needs == PortNeeds([PortGroup("g1", wanted["resources"], ["CUSTOM_PHYSNET_1"])], ["g1"])
    older = neutron_ports.resources({"id": "port-1", "resource_request": wanted})
    assert older.groups == [PortGroup("port-1", wanted["resources"], ["CUSTOM_PHYSNET_1"])]
    for nothing in ({"id": "port-1"}, {"id": "port-1", "resource_request": None}):
        assert neutron_ports.resources(nothing) == PortNeeds()


def test_an_older_neutron_is_told_the_one_who_serves_a_port() -> None:
    older = {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 600}, "required": []}
    port = record(needs=neutron_ports.resources({"id": "port-1", "resource_request": older}))
    binding = Binding("server-1", [], "host-1", "default", providers={"_port-1": ["bridge-1"]})
    assert neutron_ports.profile(binding, port) == {"allocation": "bridge-1"}
