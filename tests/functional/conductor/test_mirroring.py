"""A conductor looks after the aggregates in Placement by itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import sqlalchemy as sa

from moorage.conductor.chores import chores
from moorage.db.database import Database
from moorage.db.tables.aggregates import chores as table
from moorage.placement.client.contract import ProviderAggregates
from moorage.placement.client.local import LocalPlacement
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until


def aggregates_of(yard: Yard, host: str) -> set[str]:
    placement = LocalPlacement(yard.placement)
    listed = yard.get(f"/v2.1/os-hypervisors?hypervisor_hostname_pattern={host}")["hypervisors"]
    return set(placement.aggregates([listed[0]["id"]])[listed[0]["id"]].aggregates)


def rack_of(yard: Yard, *hosts: str) -> str:
    made = yard.api.simulate_post("/v2.1/os-aggregates", json={"aggregate": {"name": "rack"}}).json
    for host in hosts:
        path = f"/v2.1/os-aggregates/{made['aggregate']['id']}/action"
        assert yard.api.simulate_post(path, json={"add_host": {"host": host}}).status_code == 200
    return str(made["aggregate"]["uuid"])


def take_out(yard: Yard, host: str) -> None:
    """As an outage would have left it."""
    placement = LocalPlacement(yard.placement)
    listed = yard.get(f"/v2.1/os-hypervisors?hypervisor_hostname_pattern={host}")["hypervisors"]
    (found,) = placement.aggregates([listed[0]["id"]]).values()
    placement.set_aggregates([ProviderAggregates(found.uuid, found.generation, frozenset())])


def test_differences_are_put_right_every_so_often(yard: Callable[..., Yard]) -> None:
    cloud = yard(hosts=2, **{"compute.mirror_interval": 1})
    rack = rack_of(cloud, "fake-1")
    assert aggregates_of(cloud, "fake-1") == {rack}
    take_out(cloud, "fake-1")
    wait_until(lambda: aggregates_of(cloud, "fake-1") == {rack}, "the difference to be put right", 30)
    assert aggregates_of(cloud, "fake-2") == set()


def test_a_new_node_of_a_host_joins_without_any_comparison(yard: Callable[..., Yard]) -> None:
    cloud = yard(hosts=2, **{"compute.mirror_interval": 0})
    rack = rack_of(cloud, "fake-1", "fake-2")
    listed = cloud.get("/v2.1/os-hypervisors")["hypervisors"]
    (moving,) = [node["id"] for node in listed if node["hypervisor_hostname"] == "fake-1"]
    take_out(cloud, "fake-1")
    with cloud.placement.database.write() as connection:
        connection.execute(sa.text("DELETE FROM nodes WHERE uuid = :uuid"), {"uuid": moving})
    cloud.cloud.agents["fake-1"].stop()  # its next life says everything again, so the node comes anew
    cloud.cloud.agents["fake-1"] = cloud.cloud.agent("fake-1")
    cloud.cloud.agents["fake-1"].start()

    def joined() -> bool:
        found = LocalPlacement(cloud.placement).aggregates([moving])
        return found[moving].aggregates == {rack}

    wait_until(joined, "the node to join", 30)


def claim(database: Database, every: float = 0, lease: float = 60) -> bool:
    return database.transact(
        lambda connection: chores.claim(
            connection, "sweep", every=timedelta(seconds=every), lease=timedelta(seconds=lease)
        )
    )


def finish(database: Database) -> None:
    database.transact(lambda connection: chores.finish(connection, "sweep"))


def test_one_conductor_at_a_time_has_a_chore(database: Database) -> None:
    got: list[bool] = []
    threads = [threading.Thread(target=lambda: got.append(claim(database))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == [False] * 5 + [True]
    finish(database)
    assert claim(database)


def test_a_chore_is_not_done_again_at_once(database: Database) -> None:
    assert claim(database, every=60)
    finish(database)
    assert not claim(database, every=60)
    with database.write() as connection:
        connection.execute(sa.update(table).values(finished_at=sa.null()))
    assert claim(database, every=60)


def test_the_chore_of_a_dead_conductor_is_taken_over(database: Database) -> None:
    assert claim(database, lease=0)
    assert claim(database, lease=60)
    assert not claim(database)
