"""Hosts that reserve machines of one partition: what users and operators see of it; Ironic is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.db.tables.compute import nodes
from moorage.drivers.ironic.nodes.partition import Partition
from moorage.drivers.ironic.reservations import pool
from tests.functional.conductor.metal_yard import MetalYard
from tests.support import simulated_ironic
from tests.support.processes import wait_until
from tests.support.simulated_ironic import SimulatedIronic

FIRST, SECOND = "fake-1", "fake-2"


@pytest.fixture
def ironic() -> Iterator[SimulatedIronic]:
    with simulated_ironic.running() as made:
        yield made


Make = Callable[..., MetalYard]


@pytest.fixture
def metal(ironic: SimulatedIronic, database_url: str, tmp_path: Path) -> Iterator[Make]:
    made: list[MetalYard] = []

    def make(machines: int, *, shared: bool = False) -> MetalYard:
        for number in range(machines):
            ironic.enrol(f"a-{number}", "a")
        ironic.enrol("stranger", "b")
        made.append(MetalYard(database_url, tmp_path / "agents", ironic, shared=shared))
        return made[0]

    yield make
    for one in made:
        one.stop()


def test_servers_are_spread_over_hosts_that_offer_the_same_machines(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(5)
    assert [cloud.offered(pool.uuid_of(host)) for host in (FIRST, SECOND)] == [5, 5]
    servers = cloud.boot_metal(4)
    cloud.await_status(servers, "ACTIVE")
    assert sorted(map(cloud.host_of, servers)) == [FIRST, FIRST, SECOND, SECOND]
    machines = [ironic.holders(server) for server in servers]
    assert sorted(map(len, machines)) == [1] * 4
    assert all(ironic.nodes[found[0]]["conductor_group"] == "a" for found in machines)
    # Each has what is left, and what its own servers have.
    for host in (FIRST, SECOND):
        cloud.await_offer(pool.uuid_of(host), 3)
    for server in servers:
        cloud.delete(server)
    cloud.await_gone(servers)
    assert (ironic.reservations, cloud.holders()) == ({}, set())
    for host in (FIRST, SECOND):
        cloud.await_offer(pool.uuid_of(host), 5)


def test_of_two_servers_one_gets_the_last_machine_and_the_other_a_clear_fault(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(1)
    servers = cloud.boot_metal(2)
    shown = cloud.await_status(servers, "ACTIVE", "ERROR")
    (loser,) = [one for one in shown if one["status"] == "ERROR"]
    (winner,) = [one for one in shown if one["status"] == "ACTIVE"]
    assert list(ironic.reservations) == [winner["id"]]
    assert "No valid host" in loser["fault"]["message"], loser["fault"]
    cloud.await_rest()
    assert cloud.holders() == {winner["id"]}
    with cloud.placement.database.read() as connection:
        blamed = connection.execute(sa.select(sa.func.sum(nodes.c.build_failures))).scalar_one()
    assert blamed == 0


def test_a_machine_can_be_asked_for_by_a_hint_and_as_a_node_of_its_host(
    metal: Make, ironic: SimulatedIronic
) -> None:
    """Its host's pool is all that the scheduler knows; Ironic is given the machine as the only candidate."""
    cloud = metal(3)
    uuids = {str(node["name"]): uuid for uuid, node in ironic.nodes.items()}
    ways: list[dict[str, Any]] = [
        {"hints": {"candidate_node": "a-1"}},
        {"availability_zone": f"nova:{SECOND}:{uuids['a-2']}"},
        {"host": FIRST, "hypervisor_hostname": uuids["a-0"]},
    ]
    servers = [cloud.boot_metal(**way)[0] for way in ways]
    cloud.await_status(servers, "ACTIVE")
    assert [ironic.holders(server) for server in servers] == [[uuids["a-1"]], [uuids["a-2"]], [uuids["a-0"]]]
    assert [cloud.host_of(server) for server in servers[1:]] == [SECOND, FIRST]
    cloud.delete(servers[0])
    cloud.await_gone(servers[:1])
    for host in (FIRST, SECOND):
        cloud.await_offer(pool.uuid_of(host), 2)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"hints": {"candidate_node": "a-2"}}, "a-2: it is used already"),
        ({"hints": {"candidate_node": "stranger"}}, "stranger: it is not this host's to give"),
        ({"hints": {"candidate_node": "nowhere"}}, "nowhere: there is no such machine"),
    ]
    for way, words in refused:
        (shown,) = cloud.await_status(cloud.boot_metal(**way), "ERROR")
        assert words in shown["fault"]["message"] + shown["fault"].get("details", ""), shown["fault"]
        cloud.delete(shown["id"])


def test_a_peer_looks_after_the_servers_of_a_host_that_is_down_until_it_is_back(
    metal: Make, ironic: SimulatedIronic
) -> None:
    cloud = metal(3)
    servers = cloud.boot_metal(2)
    cloud.await_status(servers, "ACTIVE")
    orphan = next(server for server in servers if cloud.host_of(server) == FIRST)
    before = cloud.client.allocations(orphan)[0]
    cloud.die(FIRST)
    wait_until(lambda: cloud.host_of(orphan) == SECOND, "the peer to take over", 60)
    assert cloud.owner_of(FIRST) == SECOND
    cloud.await_offer(pool.uuid_of(FIRST), 1)  # nothing more is to come there
    reboot(cloud, orphan)
    (late,) = cloud.boot_metal()
    cloud.await_status([late], "ACTIVE")
    assert cloud.host_of(late) == SECOND
    assert (
        before
        == cloud.client.allocations(orphan)[0]
        == {pool.uuid_of(FIRST): {"CUSTOM_GOLD": 1, pool.SEAT: 1}}
    )
    cloud.come_back(FIRST)
    wait_until(lambda: cloud.host_of(orphan) == FIRST, "the host to have its own again", 60)
    assert cloud.owner_of(FIRST) == FIRST
    reboot(cloud, orphan)
    assert len(ironic.holders(orphan)) == 1
    for server in (*servers, late):
        cloud.delete(server)
    cloud.await_gone([*servers, late])
    assert (ironic.reservations, cloud.holders()) == ({}, set())


def test_machines_that_hosts_share_are_counted_once(metal: Make, ironic: SimulatedIronic) -> None:
    cloud = metal(3, shared=True)
    shared = pool.capacity_uuid(Partition("a"))
    cloud.await_offer(shared, 3)
    assert [cloud.offered(pool.uuid_of(host)) for host in (FIRST, SECOND)] == [0, 0]
    await_members(cloud, shared)
    servers = cloud.boot_metal(4)
    shown = cloud.await_status(servers, "ACTIVE", "ERROR")
    placed = [one["id"] for one in shown if one["status"] == "ACTIVE"]
    assert sorted(map(cloud.host_of, placed)) in ([FIRST, FIRST, SECOND], [FIRST, SECOND, SECOND])
    (refused,) = [one for one in shown if one["status"] == "ERROR"]
    assert "No valid host" in refused["fault"]["message"]
    held = {uuid for server in placed for uuid in cloud.client.allocations(server)[0]}
    assert held == {shared, pool.uuid_of(FIRST), pool.uuid_of(SECOND)}
    writer = writer_of(cloud, shared)
    cloud.die(writer)
    other = SECOND if writer == FIRST else FIRST
    wait_until(lambda: writer_of(cloud, shared) == other, "the peer to write", 60)
    ironic.enrol("late", "a")
    cloud.await_offer(shared, 4)
    late = cloud.boot_metal()
    cloud.await_status(late, "ACTIVE")
    for server in (*servers, *late):
        cloud.delete(server)
    cloud.await_gone([*servers, *late])
    assert (ironic.reservations, cloud.holders()) == ({}, set())


def test_what_hosts_share_is_no_place_and_in_no_zone(metal: Make) -> None:
    """In the aggregates of its writer it would be shared with everybody there."""
    cloud = metal(2, shared=True)
    shared = pool.capacity_uuid(Partition("a"))
    await_members(cloud, shared)
    listed = cloud.get("/v2.1/os-hypervisors")["hypervisors"]
    assert sorted(one["hypervisor_hostname"] for one in listed) == [FIRST, SECOND]
    body = {"aggregate": {"name": "metal", "availability_zone": "metal"}}
    made = cloud.api.simulate_post("/v2.1/os-aggregates", json=body).json["aggregate"]
    for host in (FIRST, SECOND):
        path = f"/v2.1/os-aggregates/{made['id']}/action"
        assert cloud.api.simulate_post(path, json={"add_host": {"host": host}}).status_code == 200
    pools = {pool.uuid_of(FIRST), pool.uuid_of(SECOND)}
    wait_until(lambda: cloud.client.members([made["uuid"]])[made["uuid"]] >= pools, "the mirror", 60)
    assert cloud.client.members([made["uuid"]])[made["uuid"]] == pools
    await_members(cloud, shared)
    servers = cloud.boot_metal(2, availability_zone="metal")
    cloud.await_status(servers, "ACTIVE")


def await_members(cloud: MetalYard, shared: str) -> None:
    """Until both hosts share in it, and nobody else."""
    (aggregate,) = wait_for_aggregates(cloud, shared)
    expected = {shared, pool.uuid_of(FIRST), pool.uuid_of(SECOND)}
    wait_until(lambda: cloud.client.members([aggregate])[aggregate] == expected, "both to share", 60)


def wait_for_aggregates(cloud: MetalYard, shared: str) -> frozenset[str]:
    wait_until(lambda: bool(aggregates_of(cloud, shared)), "the provider to be shared", 60)
    return aggregates_of(cloud, shared)


def aggregates_of(cloud: MetalYard, provider_uuid: str) -> frozenset[str]:
    found = cloud.client.aggregates([provider_uuid]).get(provider_uuid)
    return frozenset() if found is None else found.aggregates


def writer_of(cloud: MetalYard, shared: str) -> str:
    """The one host that owns, and so writes, what is shared."""
    with cloud.placement.database.read() as connection:
        return str(connection.execute(sa.select(nodes.c.host).where(nodes.c.uuid == shared)).scalar_one())


def reboot(cloud: MetalYard, server: str) -> None:
    reply = cloud.api.simulate_post(f"/v2.1/servers/{server}/action", json={"reboot": {"type": "HARD"}})
    assert reply.status_code == 202, reply.text
    cloud.await_rest()
    assert cloud.server(server)["status"] == "ACTIVE"
