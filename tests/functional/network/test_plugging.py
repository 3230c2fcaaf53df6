"""How ports reach the hosts of their servers: what a driver is told, and how a server waits for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from moorage.drivers.contract import PAUSED, RUNNING, Node, Parcel, ServerSpec
from moorage.drivers.fake.driver import FakeDriver
from tests.support.crossing import Crossing
from tests.support.processes import wait_until
from tests.support.stage_neutron import StageNeutron, vif_at

Make = Callable[..., Crossing]
SUBNET = {
    "cidr": "10.9.0.0/16",
    "ip_version": 4,
    "gateway_ip": "10.9.0.1",
    "dns_nameservers": ["10.9.0.2"],
    "host_routes": [{"destination": "10.8.0.0/16", "nexthop": "10.9.0.3"}],
    "enable_dhcp": True,
    "ipv6_address_mode": "",
}


class ToldDriver(FakeDriver):
    """Remembers what it was told of a server's ports, by the host's name."""

    told: dict[str, ServerSpec] = {}
    may_leave = threading.Event()
    """No server is sent to another host before."""

    def spawn(self, spec: ServerSpec) -> int:
        self.told[f"spawn at {self._host}"] = spec
        return super().spawn(spec)

    def expect(self, spec: ServerSpec) -> Parcel:
        self.told[f"expect at {self._host}"] = spec
        return super().expect(spec)

    def live_migrate(self, server_uuid: str, node_uuid: str, destination: Parcel) -> Parcel:
        assert self.may_leave.wait(60)
        return super().live_migrate(server_uuid, node_uuid, destination)


class StillDriver(ToldDriver):
    """Servers can wait for their ports paused."""

    stubborn: set[str] = set()
    """Hosts at which they can't be woken."""

    def nodes(self) -> list[Node]:
        return [msgspec.structs.replace(node, starts_paused=True) for node in super().nodes()]

    def spawn(self, spec: ServerSpec) -> int:
        power = super().spawn(spec)
        return self._set_power("stop", spec.uuid, PAUSED) if spec.paused else power

    def unpause(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("start", server_uuid, RUNNING)

    def pause(self, server_uuid: str, node_uuid: str) -> int:
        return self._set_power("stop", server_uuid, PAUSED)


@pytest.fixture(autouse=True)
def untold() -> None:
    ToldDriver.told.clear()
    ToldDriver.may_leave.set()


def host_of(server: dict[str, Any]) -> str:
    return str(server["OS-EXT-SRV-ATTR:host"])


def power_at(cloud: Crossing, host: str, uuid: str) -> int | None:
    return cloud.drivers[host].servers().get(uuid)


def plug(neutron: StageNeutron) -> None:
    """From now on ports come up, those that are there among them."""
    neutron.unplugged = set()
    for port in neutron.ports.values():
        port["status"] = "ACTIVE"


def test_a_driver_is_told_how_to_plug_and_what_guests_have_to_know(crossing: Make) -> None:
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", driver=ToldDriver)
    server = cloud.booted()
    (port,) = ToldDriver.told["spawn at host-1"].network
    assert {name: port[name] for name in ("vif_type", "vif_details", "vnic_type")} == vif_at("host-1")
    assert (port["mtu"], port["subnets"]) == (1442, [SUBNET])
    assert port["addresses"] == [server["addresses"]["stage"][0]["addr"]]
    assert not ToldDriver.told["spawn at host-1"].paused


def test_a_server_holds_still_until_its_ports_are_up(crossing: Make, neutron: StageNeutron) -> None:
    neutron.unplugged = {"host-1"}
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", driver=StillDriver)
    uuid = cloud.boot()
    wait_until(lambda: power_at(cloud, "host-1", uuid) == PAUSED, "the server to be there", 30)
    assert cloud.get(f"/v2.1/servers/{uuid}")["server"]["status"] == "BUILD"
    plug(neutron)
    server = cloud.settled(uuid)
    assert (server["status"], server["OS-EXT-STS:power_state"]) == ("ACTIVE", RUNNING)
    assert power_at(cloud, "host-1", uuid) == RUNNING


def test_nobody_holds_still_for_nothing(crossing: Make) -> None:
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", driver=StillDriver)
    cloud.booted("none")
    assert not ToldDriver.told["spawn at host-1"].paused


def test_a_conductor_that_dies_leaves_nobody_still(crossing: Make, neutron: StageNeutron) -> None:
    neutron.unplugged = {"host-1"}
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", driver=StillDriver)
    uuid = cloud.boot()
    wait_until(lambda: power_at(cloud, "host-1", uuid) == PAUSED, "the server to be there", 30)
    cloud.start_conductor()
    plug(neutron)
    assert cloud.settled(uuid)["status"] == "ACTIVE"
    assert power_at(cloud, "host-1", uuid) == RUNNING


def test_ports_that_never_come_up_need_not_keep_a_server(crossing: Make, neutron: StageNeutron) -> None:
    neutron.unplugged = {"host-1"}
    cloud = crossing(**{"network.plug_timeout": 1, "network.plug_is_fatal": False})
    cloud.start_conductor()
    cloud.start_agent("host-1", driver=StillDriver)
    uuid = cloud.booted()["id"]
    assert power_at(cloud, "host-1", uuid) == RUNNING


def test_where_ports_never_come_up_a_paused_server_is_not_left(crossing: Make, neutron: StageNeutron) -> None:
    neutron.unplugged = {"host-1"}
    cloud = crossing(**{"network.plug_timeout": 1})
    cloud.start_conductor()
    cloud.start_agent("host-1", driver=StillDriver)
    uuid = cloud.boot()
    wait_until(lambda: power_at(cloud, "host-1", uuid) == PAUSED, "the server to be there", 30)
    cloud.start_agent("host-2", driver=StillDriver)
    assert host_of(cloud.settled(uuid)) == "host-2"
    wait_until(lambda: power_at(cloud, "host-1", uuid) is None, "the first host to forget it", 30)
    assert power_at(cloud, "host-2", uuid) == RUNNING


def test_an_evacuated_server_waits_for_its_ports_too(crossing: Make, neutron: StageNeutron) -> None:
    neutron.unplugged = {"host-2"}
    cloud = crossing()
    cloud.start_conductor()
    cloud.start_agent("host-1", driver=StillDriver)
    uuid = cloud.booted()["id"]
    cloud.start_agent("host-2", driver=StillDriver)
    cloud.bury("host-1")
    before_2_95 = {"openstack-api-version": "compute 2.94"}  # since then they are shut down after it
    reply = cloud.api.simulate_post(
        f"/v2.1/servers/{uuid}/action", json={"evacuate": {}}, headers=before_2_95
    )
    assert reply.status_code == 200, reply.text
    wait_until(lambda: power_at(cloud, "host-2", uuid) == PAUSED, "the server to be there", 30)
    plug(neutron)
    server = cloud.settled(uuid)
    assert (server["status"], host_of(server)) == ("ACTIVE", "host-2")
    assert power_at(cloud, "host-2", uuid) == RUNNING


def live_migrate(cloud: Crossing, uuid: str) -> None:
    wish = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
    reply = cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json=wish)
    assert reply.status_code == 202, reply.text


def two_hosts(crossing: Make) -> Crossing:
    cloud = crossing()
    cloud.start_conductor()
    for host in ("host-1", "host-2"):
        cloud.start_agent(host, driver=ToldDriver)
    return cloud


def test_a_destination_is_told_of_the_second_binding_before_the_first_goes(
    crossing: Make, neutron: StageNeutron
) -> None:
    cloud = two_hosts(crossing)
    server = cloud.booted()
    ToldDriver.may_leave.clear()
    source = host_of(server)
    target = {"host-1": "host-2", "host-2": "host-1"}[source]
    live_migrate(cloud, server["id"])
    wait_until(lambda: f"expect at {target}" in ToldDriver.told, "the destination to be told", 30)
    (told,) = ToldDriver.told[f"expect at {target}"].network
    assert told["vif_details"] == vif_at(target)["vif_details"]
    (port,) = neutron.ports_of(server["id"])
    assert port["binding:host_id"] == source
    assert port["binding:profile"] == {"migrating_to": target}
    assert [binding["host"] for binding in neutron.bindings[port["id"]]] == [target]
    ToldDriver.may_leave.set()
    moved = cloud.settled(server["id"])
    assert (moved["status"], host_of(moved)) == ("ACTIVE", target)
    (port,) = neutron.ports_of(server["id"])
    assert (port["binding:host_id"], port["binding:profile"]) == (target, {})
    assert neutron.bindings[port["id"]] == []


def test_a_live_migration_that_fails_leaves_one_binding(crossing: Make, neutron: StageNeutron) -> None:
    cloud = two_hosts(crossing)
    server = cloud.booted(metadata={"fake:live_migrate": "fail"})
    live_migrate(cloud, server["id"])
    stayed = cloud.settled(server["id"])
    assert host_of(stayed) == host_of(server)
    (port,) = neutron.ports_of(server["id"])
    assert (port["binding:host_id"], port["binding:profile"]) == (host_of(server), {})
    assert neutron.bindings[port["id"]] == []
    assert len([spec for name, spec in ToldDriver.told.items() if name.startswith("expect")]) == 1


def test_bindings_of_two_ports_come_together_or_not_at_all(crossing: Make, neutron: StageNeutron) -> None:
    cloud = two_hosts(crossing)
    server = cloud.booted()
    neutron.unbindable = {"host-1", "host-2"} - {host_of(server)}
    live_migrate(cloud, server["id"])
    stayed = cloud.settled(server["id"])
    assert host_of(stayed) == host_of(server)
    (port,) = neutron.ports_of(server["id"])
    assert port["binding:profile"] == {}
    assert neutron.bindings[port["id"]] == []
