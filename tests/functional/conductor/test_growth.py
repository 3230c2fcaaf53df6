"""What is over goes after a while; that nothing grows then is what `test_soak.py` shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.growth import purging
from moorage.compute.growth.purging import Remains
from moorage.conductor.chores.purging import Purging
from moorage.core.clock import utcnow
from moorage.db.tables.audits import audits
from moorage.db.tables.compute import actions, operations, servers, traces
from moorage.db.tables.moves import migrations
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

_TABLES = (servers, operations, actions, traces, migrations)


def rows(yard: Yard) -> dict[str, int]:
    with yard.placement.database.read() as connection:
        return {
            table.name: connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in _TABLES
        }


def purge(yard: Yard, keep: int = 0) -> None:
    before = utcnow() - timedelta(seconds=keep)
    for _ in purging.batches(yard.placement.database.transact, before):
        pass


def boot_and_delete(yard: Yard, count: int) -> None:
    booted = yard.boot(count)
    yard.await_status(booted, "ACTIVE")
    for uuid in booted:
        yard.delete(uuid)
    yard.await_gone(booted)
    yard.await_rest()


def test_a_deleted_server_goes_with_all_that_is_its(yard: Callable[..., Yard]) -> None:
    cloud = yard(1)
    (stays,) = cloud.boot()
    cloud.await_status([stays], "ACTIVE")
    boot_and_delete(cloud, 1)
    before = rows(cloud)
    purge(cloud, keep=3600)
    assert rows(cloud) == before
    purge(cloud)
    assert rows(cloud) == {"servers": 1, "operations": 1, "actions": 1, "traces": 1, "migrations": 0}
    assert cloud.server(stays)["status"] == "ACTIVE"


def test_of_a_living_server_the_newest_stays(yard: Callable[..., Yard]) -> None:
    """Attempts go on from its newest operation: an agent would take lower ones for old."""
    cloud = yard(1)
    (uuid,) = cloud.boot()
    for action, status in (("os-stop", "SHUTOFF"), ("os-start", "ACTIVE"), ("os-stop", "SHUTOFF")):
        cloud.await_status([uuid], "ACTIVE", "SHUTOFF")
        cloud.await_rest()
        reply = cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json={action: None})
        assert reply.status_code == 202, reply.text
        cloud.await_status([uuid], status)
        cloud.await_rest()
    purge(cloud)
    found = cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert [one["action"] for one in found] == ["stop", "create"]
    assert rows(cloud)["operations"] == 1
    reply = cloud.api.simulate_post(f"/v2.1/servers/{uuid}/action", json={"os-start": None})
    assert reply.status_code == 202
    cloud.await_status([uuid], "ACTIVE")


def test_what_is_under_way_stays(yard: Callable[..., Yard]) -> None:
    cloud = yard(1)
    boot_and_delete(cloud, 1)

    def plant(connection: Connection) -> None:
        (server_id,) = connection.execute(sa.select(servers.c.id)).scalars()
        late: dict[str, Any] = {"kind": "give_back", "step": "begin", "attempt": 99, "data": {}}
        due = utcnow() + timedelta(hours=1)
        connection.execute(sa.insert(operations).values(server_id=server_id, due_at=due, **late))

    cloud.placement.database.transact(plant)
    purge(cloud)
    assert rows(cloud)["servers"] == 1


def test_a_conductor_purges_by_itself(yard: Callable[..., Yard]) -> None:
    cloud = yard(1)
    boot_and_delete(cloud, 1)
    chore = Purging(cloud.placement.database, 1)
    chore.start()
    try:

        def gone() -> bool:
            chore.purge()
            return rows(cloud)["servers"] == 0

        wait_until(gone, "the purge", 30)
    finally:
        chore.stop()


def test_a_dry_look_counts_what_would_go(yard: Callable[..., Yard]) -> None:
    cloud = yard(1, **{"fake.vcpus": 8})
    boot_and_delete(cloud, 3)
    with cloud.placement.database.read() as connection:
        assert purging.count(connection, Remains.SERVERS, utcnow()) == 3
        assert purging.count(connection, Remains.SERVERS, utcnow() - timedelta(hours=1)) == 0
        assert connection.execute(sa.select(sa.func.count()).select_from(audits)).scalar_one() == 0


def test_a_dry_look_counts_just_what_then_goes(yard: Callable[..., Yard]) -> None:
    """Not twice what goes along with a server."""
    cloud = yard(1, **{"fake.vcpus": 8})
    (stays,) = cloud.boot()
    cloud.await_status([stays], "ACTIVE")
    for action in ("os-stop", "os-start", "os-stop"):
        reply = cloud.api.simulate_post(f"/v2.1/servers/{stays}/action", json={action: None})
        assert reply.status_code == 202, reply.text
        cloud.await_status([stays], "SHUTOFF" if action == "os-stop" else "ACTIVE")
    boot_and_delete(cloud, 2)
    before = utcnow()
    with cloud.placement.database.read() as connection:
        counted = {what: purging.count(connection, what, before) for what in Remains}
    assert counted[Remains.SERVERS] == 2
    assert counted[Remains.OPERATIONS] == 3, "those of the server that stays, but for the newest"
    gone = dict.fromkeys(Remains, 0)
    for what, rows_gone in purging.batches(cloud.placement.database.transact, before):
        gone[what] += rows_gone
    assert gone == counted
