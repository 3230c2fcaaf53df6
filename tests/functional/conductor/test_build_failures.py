"""Hosts that fail builds come last until one goes well there, or their agent is restarted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from moorage.bus.contract import Heartbeat, NodeFacts
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.hosts import build_failures
from moorage.conductor.agents.inbox import Inbox
from moorage.db.tables.compute import nodes
from tests.functional.conductor.conftest import Yard

Make = Callable[..., Yard]


def failures(cloud: Yard) -> dict[str, int]:
    with cloud.placement.database.read() as connection:
        return {row.host: row.build_failures for row in connection.execute(sa.select(nodes))}


def host_of(server: Any) -> str:
    return str(server["OS-EXT-SRV-ATTR:host"])


def test_a_host_that_failed_comes_last_until_a_build_goes_well_there(yard: Make) -> None:
    cloud = yard(hosts=2, **{"fake.vcpus": 64})
    bad: dict[str, Any] = {"metadata": {"fake:spawn": "fail"}, "host": "fake-1"}
    for _ in range(2):
        cloud.await_status(cloud.boot(**bad), "ERROR")
    assert failures(cloud) == {"fake-1": 2, "fake-2": 0}
    made = cloud.await_status(cloud.boot(count=6), "ACTIVE")  # they would spread
    assert {host_of(server) for server in made} == {"fake-2"}
    cloud.await_status(cloud.boot(host="fake-1"), "ACTIVE")
    assert failures(cloud) == {"fake-1": 0, "fake-2": 0}
    (next_one,) = cloud.await_status(cloud.boot(), "ACTIVE")
    assert host_of(next_one) == "fake-1"


def test_failures_of_one_batch_add_up(yard: Make) -> None:
    cloud = yard(hosts=1, **{"fake.vcpus": 64})
    cloud.await_status(cloud.boot(count=5, metadata={"fake:spawn": "fail"}), "ERROR")
    assert failures(cloud) == {"fake-1": 5}


def test_a_restarted_agent_begins_anew(yard: Make) -> None:
    cloud = yard(hosts=1)
    database = cloud.placement.database
    (node,) = cloud.get("/v2.1/os-hypervisors")["hypervisors"]
    database.transact(lambda connection: build_failures.add(connection, [node["id"]]))
    cloud.stop()
    inbox = Inbox(database, KnownAggregates(database), lambda: None, lambda _host, _tasks: None)
    said = [NodeFacts(node["id"], "fake-1", "fake")]
    for started_at, expected in (("then", 0), ("then", 1), ("now", 0)):
        inbox.on_heartbeat(Heartbeat("fake-1", 1, {"started_at": started_at}, said))
        assert failures(cloud) == {"fake-1": expected}
        database.transact(lambda connection: build_failures.add(connection, [node["id"]]))
