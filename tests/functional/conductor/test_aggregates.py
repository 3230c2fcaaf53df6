"""What aggregates mean to real servers: zones, isolation by project, trait and image, allocation ratios."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from moorage.placement.client.contract import ProviderAggregates
from moorage.placement.client.local import LocalPlacement
from moorage.scheduler.story import story
from moorage.scheduler.trace import Trace
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

Make = Callable[..., Yard]
MINE = "admin"
"""The project of the caller, who has no Keystone."""


def post(cloud: Yard, path: str, body: dict[str, Any]) -> Any:
    reply = cloud.api.simulate_post(f"/v2.1{path}", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json


def aggregate(cloud: Yard, name: str, *hosts: str, **metadata: str) -> int:
    """An aggregate with these hosts; Placement knows it when this returns."""
    number: int = post(cloud, "/os-aggregates", {"aggregate": {"name": name}})["aggregate"]["id"]
    if metadata:
        set_metadata(cloud, number, **metadata)
    for host in hosts:
        post(cloud, f"/os-aggregates/{number}/action", {"add_host": {"host": host}})
    return number


def set_metadata(cloud: Yard, number: int, **metadata: str | None) -> None:
    post(cloud, f"/os-aggregates/{number}/action", {"set_metadata": {"metadata": metadata}})


def trait_flavor(cloud: Yard, trait: str) -> str:
    flavor = {"name": trait, "id": trait, "ram": 64, "vcpus": 1, "disk": 1}
    post(cloud, "/flavors", {"flavor": flavor})
    post(cloud, f"/flavors/{trait}/os-extra_specs", {"extra_specs": {f"trait:{trait}": "required"}})
    return trait


def hosts_of(cloud: Yard, uuids: list[str]) -> set[str]:
    return {server["OS-EXT-SRV-ATTR:host"] for server in cloud.await_status(uuids, "ACTIVE")}


def fault_of(cloud: Yard, uuids: list[str]) -> str:
    (server,) = cloud.await_status(uuids, "ERROR")
    return str(server["fault"]["message"])


def told(cloud: Yard, uuid: str) -> str:
    (decision,) = cloud.get(f"/v2.1/servers/{uuid}/moorage-trace")["traces"]
    return story(msgspec.convert(decision["trace"], Trace))


def test_a_zone_is_its_aggregates_and_the_default_zone_is_the_rest(yard: Make) -> None:
    cloud = yard(hosts=3, **{"fake.vcpus": 8})
    aggregate(cloud, "e", "fake-1", availability_zone="east")
    aggregate(cloud, "ssd", "fake-1", "fake-2", ssd="true")
    east = cloud.boot(count=2, availability_zone="east")
    rest = cloud.boot(count=4, availability_zone="nova")
    assert hosts_of(cloud, east) == {"fake-1"}
    assert hosts_of(cloud, rest) == {"fake-2", "fake-3"}
    assert {cloud.server(uuid)["OS-EXT-AZ:availability_zone"] for uuid in east} == {"east"}
    assert hosts_of(cloud, cloud.boot(count=3)) == {"fake-1", "fake-2", "fake-3"}


def test_a_full_zone_is_told_as_such(yard: Make) -> None:
    cloud = yard(hosts=3)
    aggregate(cloud, "e", "fake-1", availability_zone="east")
    hosts_of(cloud, cloud.boot(count=2, availability_zone="east"))
    (late,) = cloud.boot(availability_zone="east")
    assert "1 of 1 host in the availability zone 'east' doesn't have 1 VCPU free" in fault_of(cloud, [late])
    lines = told(cloud, late).splitlines()
    assert "Excluded by the availability zone 'east': 2 providers." in lines
    assert "What excludes most: 1 doesn't have 1 VCPU free." in lines


def test_a_forced_host_decides_its_zone_by_itself(yard: Make) -> None:
    cloud = yard(hosts=2)
    aggregate(cloud, "e", "fake-1", availability_zone="east")
    assert hosts_of(cloud, cloud.boot(availability_zone="east:fake-2")) == {"fake-2"}


def test_projects_stay_in_their_aggregates_and_others_out(yard: Make) -> None:
    cloud = yard(hosts=3, **{"fake.vcpus": 8})
    number = aggregate(cloud, "ours", "fake-1", filter_tenant_id=f"somebody,{MINE}")
    assert hosts_of(cloud, cloud.boot(count=3)) == {"fake-1"}
    set_metadata(cloud, number, filter_tenant_id="somebody")
    assert hosts_of(cloud, cloud.boot(count=4)) == {"fake-2", "fake-3"}


def test_hosts_stay_set_apart_while_placement_does_not_know_it(yard: Make) -> None:
    cloud = yard(hosts=2, **{"fake.vcpus": 8})
    aggregate(cloud, "theirs", "fake-1", filter_tenant_id="somebody")
    placement = LocalPlacement(cloud.placement)
    nodes = [one["id"] for one in cloud.get("/v2.1/os-hypervisors")["hypervisors"]]
    found = placement.aggregates(nodes).values()
    assert sum(bool(one.aggregates) for one in found) == 1
    lost = [ProviderAggregates(one.uuid, one.generation, frozenset()) for one in found]
    assert placement.set_aggregates(lost) == {}
    assert hosts_of(cloud, cloud.boot(count=4)) == {"fake-2"}


def test_a_project_without_hosts_may_be_refused(yard: Make) -> None:
    cloud = yard(hosts=1, **{"scheduler.placement_aggregate_required_for_tenants": True})
    assert "No hosts are set apart for this project" in fault_of(cloud, cloud.boot())


def test_aggregates_with_traits_are_for_those_who_ask(yard: Make) -> None:
    cloud = yard(hosts=3, **{"fake.vcpus": 8, "fake.traits": ["CUSTOM_LICENSED", "COMPUTE_NODE"]})
    aggregate(cloud, "licensed", "fake-1", **{"trait:CUSTOM_LICENSED": "required"})
    aggregate(cloud, "closed", "fake-2", **{"trait:CUSTOM_CLOSED": "required"})
    assert hosts_of(cloud, cloud.boot(count=2)) == {"fake-3"}
    flavor = trait_flavor(cloud, "CUSTOM_LICENSED")
    assert hosts_of(cloud, cloud.boot(count=4, flavorRef=flavor)) == {"fake-1", "fake-3"}


def test_aggregates_may_be_for_certain_images(yard: Make) -> None:
    cloud = yard(hosts=2, **{"fake.vcpus": 8})
    number = aggregate(cloud, "distributions", "fake-1", os_distro="debian,ubuntu")
    assert hosts_of(cloud, cloud.boot(count=2)) == {"fake-2"}
    set_metadata(cloud, number, os_distro="debian, cirros")
    assert hosts_of(cloud, cloud.boot(count=4)) == {"fake-1", "fake-2"}


def test_ratios_follow_metadata_and_membership_and_the_lowest_wins(yard: Make) -> None:
    cloud = yard(hosts=2, **{"fake.vcpus": 10})
    nodes = {
        one["hypervisor_hostname"]: one["id"] for one in cloud.get("/v2.1/os-hypervisors")["hypervisors"]
    }
    placement = LocalPlacement(cloud.placement)

    def await_vcpus(**wanted: int) -> None:
        def is_so() -> bool:
            found = placement.candidates([("resources", "VCPU:1"), ("limit", "9")]).provider_summaries
            return all(
                found[nodes[host.replace("_", "-")]].resources["VCPU"]["capacity"] == amount
                for host, amount in wanted.items()
            )

        wait_until(is_so, f"{wanted}", 20)

    await_vcpus(fake_1=10, fake_2=10)
    dense = aggregate(cloud, "dense", "fake-1", "fake-2", cpu_allocation_ratio="8.0")
    await_vcpus(fake_1=80, fake_2=80)
    calm = aggregate(cloud, "calm", "fake-2", cpu_allocation_ratio="2")
    await_vcpus(fake_1=80, fake_2=20)
    set_metadata(cloud, dense, cpu_allocation_ratio="1.5")
    await_vcpus(fake_1=15, fake_2=15)
    post(cloud, f"/os-aggregates/{dense}/action", {"remove_host": {"host": "fake-2"}})
    await_vcpus(fake_1=15, fake_2=20)
    set_metadata(cloud, calm, cpu_allocation_ratio=None)
    set_metadata(cloud, dense, cpu_allocation_ratio="plenty")
    await_vcpus(fake_1=10, fake_2=10)


def test_a_ratio_may_fall_below_what_is_used(yard: Make) -> None:
    cloud = yard(hosts=1, **{"fake.vcpus": 2})
    hosts_of(cloud, cloud.boot(count=2))
    aggregate(cloud, "calm", "fake-1", cpu_allocation_ratio="0.5")

    def full() -> bool:
        found = LocalPlacement(cloud.placement).why([("resources", "VCPU:1")])
        assert found is not None
        return any("free" in miss["failures"][0]["sentence"] for miss in found["near_misses"])

    wait_until(full, "the lower ratio", 20)
    assert "No valid host was found" in fault_of(cloud, cloud.boot())
