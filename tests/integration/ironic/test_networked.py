"""A tenant's machine on networks of a real Neutron, by a real Ironic, with the official client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from moorage.drivers.contract import DriverError
from moorage.drivers.ironic.driver import IronicDriver
from moorage.drivers.ironic.nodes.partition import Partition
from tests.integration.ironic.late import SETTINGS, at_work, held, wait_for_strike
from tests.integration.ironic.lines import client, port_of
from tests.integration.ironic.networked_site import DOMAIN, GROUP, NetworkedSite, mac, running
from tests.lab.client.openstack import ClientError
from tests.support import debian, faulty_proxy
from tests.support.faulty_proxy import FaultyProxy
from tests.support.processes import wait_until
from tests.support.websockets import Refused, WebSocketClient

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore::DeprecationWarning")]
"""The first test waits until five services and a whole deployment have started."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NetworkedSite]:
    try:
        with running(tmp_path_factory.mktemp("networked")) as made:
            made.tenant_network("front", 1)
            made.tenant_network("back", 2, dns_domain=DOMAIN)
            yield made
    except debian.Unavailable as error:
        pytest.skip(str(error))


def at_switch(node: dict[str, Any], *indexes: int) -> list[dict[str, Any]]:
    """Where these cards of a machine are plugged in."""
    number = int(node["name"].removeprefix("a-"))
    return [
        {
            "switch_id": f"02:00:00:00:00:{number:02x}",
            "port_id": f"Ethernet1/{index}",
            "switch_info": f"rack-{number}",
        }
        for index in indexes
    ]


def test_a_tenant_takes_a_machine_with_networks_through_its_life(site: NetworkedSite) -> None:
    for name in ("a-0", "a-1"):
        site.print_on_console(name, "what another tenant did\n")
    server = site.create("--network front --network back --config-drive True life")
    node = site.node_of(server)
    assert_connected(site, server, node)
    site.print_on_console(node["name"], "life login:\n")
    assert site.order("console log show life").split() == ["life", "login:"]
    site.order("server rescue --password let-me-in life")
    site.wait(server, "RESCUE")
    assert site.node_of(server)["provision_state"] == "rescue"
    assert len(site.vifs(node["uuid"])) == 2
    site.order("server unrescue life")
    site.wait(server, "ACTIVE")
    assert site.node_of(server)["provision_state"] == "active"
    site.order("server delete --wait life")
    assert site.ports_of(server) == {}
    assert site.vifs(node["uuid"]) == set()


def assert_connected(site: NetworkedSite, server: str, node: dict[str, Any]) -> None:
    """Neutron, the guest and the user are told of the same cards of the machine."""
    number = int(node["name"].removeprefix("a-"))
    bond, card = mac(number, 0), mac(number, 3)
    front, back = (site.ports_of(server)[name] for name in ("front", "back"))
    for port in (front, back):
        assert (port.binding_host_id, port.binding_vnic_type) == (node["uuid"], "baremetal")
        assert (port.binding_vif_type, port.status) == ("other", "ACTIVE")
        assert port.project_id == site.lab.demo.project_id
    links = front.binding_profile["local_link_information"]
    assert sorted(links, key=lambda link: str(link["port_id"])) == at_switch(node, 1, 2)
    assert front.binding_profile["local_group_information"]["bond_mode"] == "802.3ad"
    assert back.binding_profile["local_link_information"] == at_switch(node, 3)
    assert (front.mac_address, back.mac_address) == (bond, card)
    assert (front.dns_assignment[0]["fqdn"], back.dns_name) == ("life.cloud.example.", "life")
    told = site.network_data(node["uuid"])["links"]
    assert [link["ethernet_mac_address"] for link in told[:2]] == [bond, card]
    assert [link["type"] for link in told] == ["bond", "phy", "phy", "phy"]
    assert {link["ethernet_mac_address"] for link in told[2:]} == {mac(number, 1), mac(number, 2)}
    assert set(told[0]["bond_links"]) == {link["id"] for link in told[2:]}

    def addresses() -> dict[str, str]:
        shown = site.show(server)["addresses"]
        return {name: one[0]["OS-EXT-IPS-MAC:mac_addr"] for name, one in shown.items()}

    wait_until(lambda: addresses() == {"front": bond, "back": card}, "the hardware addresses", 60)


def test_a_tenant_types_at_the_serial_line_of_a_machine(site: NetworkedSite) -> None:
    """Ironic's own socat, behind a token of ours: what is typed there comes back."""
    site.create("--network front line")
    with site.console_proxy() as port:
        opened = urlsplit(site.ask("console url show --serial line")["url"])
        assert opened.scheme == "ws"
        here = f"ws://127.0.0.1:{port}/?{opened.query}"
        line = WebSocketClient(here, timeout=30)
        line.send(b"anybody there?\n")
        assert b"anybody there?" in line.receive(14)
        with pytest.raises(ClientError, match="Unavailable console type"):
            site.ask("console url show --novnc line")
        site.order("server delete --wait line")
        line.await_end()
        with pytest.raises(Refused, match="403"):
            WebSocketClient(here)


def test_ports_come_and_go_with_the_cards_of_the_machine(site: NetworkedSite) -> None:
    """One that the user brought is as it was when it is given back: a virtual machine could have it next."""
    server = site.create("--network front --network back change")
    node = site.node_of(server)["uuid"]
    assert len(site.vifs(node)) == 2
    site.order("server remove network change back")
    wait_until(lambda: set(site.ports_of(server)) == {"front"}, "the port to be deleted", 60)
    assert len(site.vifs(node)) == 1
    brought = site.tenant_port("back")
    assert brought.binding_vnic_type == "normal"
    site.order(f"server add port change {brought.id}")
    taken = site.admin.network.get_port(brought.id)
    assert (taken.binding_host_id, taken.binding_vnic_type, taken.status) == (node, "baremetal", "ACTIVE")
    assert taken.binding_profile["local_link_information"]
    site.order("server delete --wait change")
    left = site.admin.network.get_port(brought.id)
    assert (left.device_id, left.binding_host_id, left.binding_vnic_type) == ("", "", "normal")
    assert left.binding_profile == {}
    site.admin.network.delete_port(left)


@pytest.fixture
def line(site: NetworkedSite) -> Iterator[FaultyProxy]:
    """To Ironic, on which an order can be late."""
    with faulty_proxy.in_front_of(port_of(site.metal)) as made:
        yield made


def frozen(site: NetworkedSite, line: FaultyProxy) -> IronicDriver:
    """A driver of a host that has the machines, and does not hear that it has lost them."""
    made = IronicDriver(client(line.port, site.metal.token), Partition(GROUP), SETTINGS)
    made.look()
    made.keep(made.eligible())
    return made


def create_on(site: NetworkedSite, machine: str, name: str) -> str:
    """Once its machine is free again."""
    node = next(uuid for uuid, one in site.metal.all().items() if one["name"] == machine)
    wait_until(lambda: site.metal.show(node)["provision_state"] == "available", "the machine", 60)
    return site.create(f"--network front --hint candidate_node={machine} {name}")


def test_a_port_that_is_attached_late_does_not_stay_with_the_next_server(
    site: NetworkedSite, line: FaultyProxy
) -> None:
    brought, left = site.tenant_port("back"), create_on(site, "a-0", "left")
    node = site.node_of(left)["uuid"]
    driver = frozen(site, line)
    with (
        held(line, "POST", "/vifs") as late,
        at_work(lambda: driver.attach_interface(left, node, {"id": brought.id})) as failures,
    ):
        wait_for_strike(line)
        site.order("server delete --wait left")
        server = create_on(site, "a-0", "next")
        own = site.vifs(node)
        late.set()
    assert [type(error) for error in failures] == [DriverError]
    assert (("POST", f"/v1/nodes/{node}/vifs", 204)) in line.answered, "Ironic does not know better"
    assert site.vifs(node) == own == {site.ports_of(server)["front"].id}
    assert site.admin.network.get_port(brought.id).binding_host_id == ""
    site.order("server delete --wait next")
    site.admin.network.delete_port(brought.id)


def test_a_port_that_is_detached_late_stays_with_the_next_server(
    site: NetworkedSite, line: FaultyProxy
) -> None:
    brought, left = site.tenant_port("back"), create_on(site, "a-0", "left")
    node = site.node_of(left)["uuid"]
    site.order(f"server add port left {brought.id}")
    driver = frozen(site, line)
    with (
        held(line, "DELETE", "/vifs/") as late,
        at_work(lambda: driver.detach_interface(left, node, brought.id)) as failures,
    ):
        wait_for_strike(line)
        site.order("server delete --wait left")
        here, there = create_on(site, "a-0", "next"), create_on(site, "a-1", "other")
        site.order(f"server add port other {brought.id}")
        late.set()
    assert [type(error) for error in failures] == [DriverError]
    on = site.node_of(there)["uuid"]
    assert site.vifs(node) == {site.ports_of(here)["front"].id}
    assert brought.id in site.vifs(on)
    taken = site.admin.network.get_port(brought.id)
    assert (taken.binding_host_id, taken.status) == (on, "ACTIVE")
    for name in ("next", "other"):
        site.order(f"server delete --wait {name}")
    site.admin.network.delete_port(brought.id)
