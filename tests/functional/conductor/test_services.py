"""The list of services, of processes that are alive: conductors are in it, and who is deleted comes back."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from moorage.conductor.agents.presence import Presence
from moorage.core import uuids
from moorage.placement.client.contract import ConsumerClaim
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

Make = Callable[..., Yard]


def services(cloud: Yard, binary: str) -> list[Any]:
    found: list[Any] = cloud.get(f"/v2.1/os-services?binary={binary}")["services"]
    return found


def delete(cloud: Yard, service: Any) -> int:
    return int(cloud.api.simulate_delete(f"/v2.1/os-services/{service['id']}").status_code)


def test_a_conductor_is_listed_and_can_not_be_disabled(yard: Make) -> None:
    cloud = yard(hosts=0, **{"conductor.host": "control-1"})
    wait_until(lambda: bool(services(cloud, "nova-conductor")), "the conductor", 10)
    (conductor,) = services(cloud, "nova-conductor")
    assert (conductor["host"], conductor["state"], conductor["zone"]) == ("control-1", "up", "internal")
    assert services(cloud, "nova-scheduler") == []
    path = f"/v2.1/os-services/{conductor['id']}"
    assert cloud.api.simulate_put(path, json={"status": "disabled"}).status_code == 400


def test_a_conductor_that_ended_is_shown_as_down(yard: Make) -> None:
    cloud = yard(hosts=0, **{"compute.service_down_time": 1, "conductor.heartbeat_interval": 0.2})
    wait_until(lambda: bool(services(cloud, "nova-conductor")), "the conductor", 10)
    assert services(cloud, "nova-conductor")[0]["state"] == "up"
    cloud.cloud.stop()
    wait_until(lambda: services(cloud, "nova-conductor")[0]["state"] == "down", "its state", 10)


def test_two_conductors_of_a_machine_are_one_entry_that_is_up_as_long_as_one_of_them_lives(
    yard: Make,
) -> None:
    beats = {"compute.service_down_time": 1, "conductor.heartbeat_interval": 0.2}
    cloud = yard(hosts=0, **beats, **{"conductor.host": "control-1"})
    other = Presence(cloud.placement.database, "control-1", 0.2)
    other.start()
    wait_until(lambda: bool(services(cloud, "nova-conductor")), "the conductors", 10)
    cloud.cloud.stop()
    ended = time.monotonic()
    while time.monotonic() < ended + 3:
        assert [(one["host"], one["state"]) for one in services(cloud, "nova-conductor")] == [
            ("control-1", "up")
        ]
    other.stop()
    wait_until(lambda: services(cloud, "nova-conductor")[0]["state"] == "down", "its state", 10)


def test_two_conductors_with_names_of_their_own_are_two_entries(yard: Make) -> None:
    beats = {"compute.service_down_time": 1, "conductor.heartbeat_interval": 0.2}
    cloud = yard(hosts=0, **beats, **{"conductor.host": "control-1"})
    other = Presence(cloud.placement.database, "control-2", 0.2)
    other.start()

    def states() -> dict[str, str]:
        return {one["host"]: one["state"] for one in services(cloud, "nova-conductor")}

    wait_until(lambda: states() == {"control-1": "up", "control-2": "up"}, "both", 10)
    other.stop()
    wait_until(lambda: states() == {"control-1": "up", "control-2": "down"}, "the end of one", 10)


def test_a_conductor_that_lives_comes_back_when_it_is_deleted(yard: Make) -> None:
    cloud = yard(hosts=0, **{"conductor.heartbeat_interval": 0.2})
    wait_until(lambda: bool(services(cloud, "nova-conductor")), "the conductor", 10)
    (conductor,) = services(cloud, "nova-conductor")
    assert delete(cloud, conductor) == 204
    wait_until(lambda: bool(services(cloud, "nova-conductor")), "the conductor", 10)
    assert services(cloud, "nova-conductor")[0]["id"] != conductor["id"]


def test_a_host_that_lives_comes_back_with_nodes_and_inventory(yard: Make) -> None:
    cloud = yard(hosts=2, **{"agent.inventory_interval": 3600})
    first = next(one for one in services(cloud, "nova-compute") if one["host"] == "fake-1")
    assert delete(cloud, first) == 204

    def is_back() -> bool:
        hosts = {one["hypervisor_hostname"] for one in cloud.get("/v2.1/os-hypervisors")["hypervisors"]}
        return hosts == {"fake-1", "fake-2"}

    wait_until(is_back, "the host", 20)
    again = next(one for one in services(cloud, "nova-compute") if one["host"] == "fake-1")
    assert again["id"] != first["id"]
    wait_until(lambda: cloud.providers() == 2, "its inventory", 20)
    cloud.await_status(cloud.boot(count=4), "ACTIVE")  # more than one host takes
    assert delete(cloud, again) == 409


def status(cloud: Yard, host: str, wanted: str) -> None:
    (found,) = [one for one in services(cloud, "nova-compute") if one["host"] == host]
    path = f"/v2.1/os-services/{found['id']}"
    assert cloud.api.simulate_put(path, json={"status": wanted}).status_code == 200


def test_a_host_just_enabled_takes_servers_at_once_and_one_just_disabled_none(yard: Make) -> None:
    """Its agent hears of it much later, with its next heartbeat."""
    cloud = yard(hosts=1, **{"agent.heartbeat_interval": 15.0, "compute.service_down_time": 600})
    (node,) = cloud.get("/v2.1/os-hypervisors")["hypervisors"]
    status(cloud, "fake-1", "disabled")
    wait_until(lambda: cloud.client.tree_has(node["id"], ["COMPUTE_STATUS_DISABLED"]), "the trait", 40)
    (server,) = cloud.await_status(cloud.boot(), "ERROR", "ACTIVE")
    assert "disabled" in server["fault"]["message"]
    wait_until(lambda: cloud.client.tree_has(node["id"], ["COMPUTE_STATUS_DISABLED"]), "the trait", 40)
    status(cloud, "fake-1", "enabled")
    (server,) = cloud.await_status(cloud.boot(), "ERROR", "ACTIVE")
    assert server["status"] == "ACTIVE", server["fault"]


def test_a_provider_that_was_in_use_goes_later(yard: Make) -> None:
    cloud = yard(hosts=2)
    (first,) = [one for one in cloud.get("/v2.1/os-hypervisors/detail")["hypervisors"] if _is(one, "fake-1")]
    stray = ConsumerClaim(uuids.generate(), {first["id"]: {"VCPU": 1}}, "p", "u")
    assert cloud.client.claim([stray]) == [None]
    cloud.cloud.agents.pop("fake-1").stop()
    (service,) = [one for one in services(cloud, "nova-compute") if one["host"] == "fake-1"]
    assert delete(cloud, service) == 204
    assert cloud.client.tree_has(first["id"], [])
    cloud.client.release([stray.consumer_uuid])
    wait_until(lambda: not cloud.client.tree_has(first["id"], []), "the provider to go", 60)


def _is(hypervisor: Any, name: str) -> bool:
    return bool(hypervisor["hypervisor_hostname"] == name)
