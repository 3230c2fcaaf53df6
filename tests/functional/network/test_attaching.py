"""Ports that come and go amid faults: Neutron's, a conductor's, a host's. Nobody's port is lost or left.

Against Neutron on stage, on SQLite alone: `tests/functional/conductor/test_interfaces.py` has both databases,
`tests/integration/test_neutron.py` the real Neutron.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moorage.network.neutron import NeutronNetwork
from moorage.network.neutron_floating import FloatingAddresses
from moorage.network.neutron_link import NeutronLink
from tests.support import stage_neutron
from tests.support.crossing import PROJECT, Crossing
from tests.support.faulty_proxy import Fault, FaultyProxy
from tests.support.processes import wait_until
from tests.support.stage_neutron import NETWORK, StageNeutron

pytestmark = pytest.mark.usefixtures("soon", "nothing_is_left")

AWAY = Fault(503, b"<html>no server is available</html>", times=1)
LOST = Fault(works=True, times=1)
FAULTS = {"away": AWAY, "lost": LOST}
ATTACH_CALLS = [("GET", "/ports"), ("POST", "/ports"), ("PUT", "/ports/")]
TAKE_CALLS = [("GET", "/ports/"), ("PUT", "/ports/")]
DETACH_CALLS = [("GET", "/ports"), ("DELETE", "/ports/")]


@pytest.fixture(scope="module")
def cloud(proxy: FaultyProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crossing]:
    """One host. The API reaches Neutron at all times."""
    directory: Path = tmp_path_factory.mktemp("attaching")

    def network(who: str) -> NeutronNetwork:
        return stage_neutron.network_at(proxy.target if who == "api" else proxy.port, who)

    crossing = Crossing(f"sqlite:///{directory / 'moorage.sqlite'}", directory / "agents", network)
    crossing.start_conductor()
    crossing.start_agent("host-1")
    yield crossing
    crossing.stop()


def attach(cloud: Crossing, uuid: str, **wanted: str) -> Any:
    return cloud.api.simulate_post(f"/v2.1/servers/{uuid}/os-interface", json={"interfaceAttachment": wanted})


def detach(cloud: Crossing, uuid: str, port_id: str) -> None:
    reply = cloud.api.simulate_delete(f"/v2.1/servers/{uuid}/os-interface/{port_id}")
    assert reply.status_code == 202, reply.text


def at(call: tuple[str, str], fault: Fault) -> Fault:
    method, path = call
    return replace(fault, method=method, path=path)


def is_as_it_was(stage: StageNeutron, port_id: str) -> bool:
    port = stage.ports[port_id]
    return (port["device_id"], port["device_owner"], port["binding:host_id"]) == ("", "", "")


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_neutron_make_no_second_port(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, fault: str
) -> None:
    uuid = cloud.booted()["id"]
    for number, call in enumerate(ATTACH_CALLS, start=2):
        proxy.fail(at(call, FAULTS[fault]))
        reply = attach(cloud, uuid, net_id=NETWORK)
        assert (reply.status_code, proxy.struck) == (200, 1), reply.text
        assert len(stage.ports_of(uuid)) == number
    addresses = cloud.settled(uuid)["addresses"]["stage"]
    assert len(addresses) == len(ATTACH_CALLS) + 1
    made = [port["id"] for port in stage.ports_of(uuid)]
    for call, port_id in zip(DETACH_CALLS, made, strict=False):
        proxy.fail(at(call, FAULTS[fault]))
        detach(cloud, uuid, port_id)
        cloud.settled(uuid)
        assert port_id not in stage.ports


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_neutron_cost_nobody_a_port(
    cloud: Crossing, stage: StageNeutron, proxy: FaultyProxy, fault: str
) -> None:
    uuid = cloud.booted("none")["id"]
    for call in TAKE_CALLS:
        mine = stage.add_port(PROJECT)
        proxy.fail(at(call, FAULTS[fault]))
        reply = attach(cloud, uuid, port_id=mine)
        assert (reply.status_code, proxy.struck) == (200, 1), reply.text
        proxy.fail(at(("PUT", "/ports/"), FAULTS[fault]))
        detach(cloud, uuid, mine)
        cloud.settled(uuid)
        assert is_as_it_was(stage, mine)


def test_a_brought_port_outlives_a_server_that_is_deleted_meanwhile(
    cloud: Crossing, stage: StageNeutron
) -> None:
    uuid = cloud.booted("none", metadata={"fake:attach_interface": "hang"})["id"]
    mine = stage.add_port(PROJECT)
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(attach(cloud, uuid, port_id=mine).status_code))
    asking.start()
    wait_until(lambda: stage.ports[mine]["binding:host_id"] == "host-1", "the port to be bound", 60)
    cloud.delete(uuid)
    asking.join(60)
    assert answers == [409]
    assert is_as_it_was(stage, mine)


def test_of_two_who_bring_the_same_port_one_is_refused(cloud: Crossing, stage: StageNeutron) -> None:
    """Both are told that it is free, and the second one takes nothing from the first."""
    uuid = cloud.booted("none", metadata={"fake:attach_interface": "delay=0.5"})["id"]
    mine = stage.add_port(PROJECT)
    answers: list[int] = []
    asking = [
        threading.Thread(target=lambda: answers.append(attach(cloud, uuid, port_id=mine).status_code))
        for _ in range(2)
    ]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join(60)
    assert sorted(answers) == [200, 409]
    assert [port["id"] for port in stage.ports_of(uuid)] == [mine]
    assert len(cloud.settled(uuid)["addresses"]["stage"]) == 1


def test_a_conductor_goes_on_where_another_one_ended(cloud: Crossing, stage: StageNeutron) -> None:
    """It dies while the host is at work."""
    uuid = cloud.booted(metadata={"fake:attach_interface": "delay=1"})["id"]
    answers: list[int] = []
    asking = threading.Thread(target=lambda: answers.append(attach(cloud, uuid).status_code))
    asking.start()
    wait_until(lambda: len(stage.ports_of(uuid)) == 2, "the second port", 60)
    cloud.start_conductor()
    asking.join(60)
    assert answers == [200]
    ports = stage.ports_of(uuid)
    assert len(ports) == 2
    assert {port["binding:host_id"] for port in ports} == {"host-1"}
    assert len(cloud.settled(uuid)["addresses"]["stage"]) == 2


def test_a_port_that_is_gone_is_lost_when_neutron_says_so(cloud: Crossing, stage: StageNeutron) -> None:
    uuid = cloud.booted()["id"]
    (port,) = stage.ports_of(uuid)
    del stage.ports[port["id"]]
    event = {"name": "network-vif-deleted", "server_uuid": uuid, "tag": port["id"]}
    reply = cloud.api.simulate_post("/v2.1/os-server-external-events", json={"events": [event]})
    assert reply.status_code == 200, reply.text
    wait_until(lambda: cloud.get(f"/v2.1/servers/{uuid}")["server"]["addresses"] == {}, "the port to go", 60)


def test_ports_are_not_taken_for_gone_by_somebody_who_does_not_see_them(
    cloud: Crossing, stage: StageNeutron
) -> None:
    """An operator's slip with our roles must not cost servers their ports."""
    uuid = cloud.booted()["id"]
    (port,) = stage.ports_of(uuid)
    event = {"name": "network-changed", "server_uuid": uuid, "tag": port["id"]}
    stage.hides = True
    try:
        cloud.api.simulate_post("/v2.1/os-server-external-events", json={"events": [event]})
        looks = len(stage.asked)
        wait_until(lambda: ("conductor", "GET", "quotas") in stage.asked[looks:], "a second look", 60)
        assert cloud.at_rest()
        assert cloud.settled(uuid)["addresses"]["stage"]
    finally:
        stage.hides = False


# ---------------------------------------------------------------- floating addresses


def float_(cloud: Crossing, uuid: str, action: str, **wanted: str) -> Any:
    headers = {"openstack-api-version": "compute 2.43"}
    return cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json={action: wanted}, headers=headers)


def await_floating(cloud: Crossing, uuid: str, *wanted: str) -> None:
    """Until just these are shown."""

    def shown() -> list[str]:
        found = cloud.get(f"/v2.1/servers/{uuid}")["server"]["addresses"]["stage"]
        return [one["addr"] for one in found if one["OS-EXT-IPS:type"] == "floating"]

    wait_until(lambda: shown() == [*wanted], f"{wanted} to be shown", 60)


def test_a_floating_address_leads_to_one_server_after_the_other(cloud: Crossing, stage: StageNeutron) -> None:
    first, second = cloud.booted()["id"], cloud.booted()["id"]
    floating = stage.add_floating("192.0.2.1")
    for uuid, other in ((first, second), (second, first)):
        reply = float_(cloud, uuid, "addFloatingIp", address="192.0.2.1")
        assert reply.status_code == 202, reply.text
        (port,) = stage.ports_of(uuid)
        assert floating["port_id"] == port["id"]
        assert floating["fixed_ip_address"] == port["fixed_ips"][0]["ip_address"]
        await_floating(cloud, uuid, "192.0.2.1")
        await_floating(cloud, other)
    assert float_(cloud, first, "removeFloatingIp", address="192.0.2.1").status_code == 409
    assert float_(cloud, second, "removeFloatingIp", address="192.0.2.1").status_code == 202
    assert floating["port_id"] is None
    await_floating(cloud, second)


def test_floating_addresses_that_can_not_be_had(cloud: Crossing, stage: StageNeutron) -> None:
    uuid, bare = cloud.booted()["id"], cloud.booted("none")["id"]
    stage.add_floating("192.0.2.2")
    there = {"address": "192.0.2.2"}
    assert float_(cloud, uuid, "addFloatingIp", address="192.0.2.9").status_code == 404
    assert float_(cloud, uuid, "removeFloatingIp", address="192.0.2.9").status_code == 404
    assert "No fixed IPs" in float_(cloud, bare, "addFloatingIp", **there).text
    refused = float_(cloud, uuid, "addFloatingIp", **there, fixed_address="10.9.9.9")
    assert (refused.status_code, "not assigned" in refused.text) == (400, True)
    reply = cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json={"addFloatingIp": there})
    assert reply.status_code == 404, "dropped by 2.44"


def test_a_floating_address_that_was_led_elsewhere_meanwhile_stays_there(
    cloud: Crossing, stage: StageNeutron, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the call came late: what was decided on an older revision is refused."""
    uuid = cloud.booted()["id"]
    floating = stage.add_floating("192.0.2.3")
    find = FloatingAddresses._find

    def find_too_early(self: FloatingAddresses, link: NeutronLink, address: str) -> dict[str, Any]:
        found = find(self, link, address)
        floating.update(port_id="elsewhere", revision_number=2)
        return found

    monkeypatch.setattr(FloatingAddresses, "_find", find_too_early)
    assert float_(cloud, uuid, "addFloatingIp", address="192.0.2.3").status_code == 400
    assert floating["port_id"] == "elsewhere"
