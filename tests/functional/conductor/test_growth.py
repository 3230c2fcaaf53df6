"""What is over goes after a while, so that neither the database nor a journal nor the memory grows."""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
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

SERVERS = int(os.environ.get("SOAK_SERVERS", "400"))
_TOGETHER = 40
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


def test_many_boots_and_deletes_leave_nothing_that_grows(yard: Callable[..., Yard], tmp_path: Path) -> None:
    """`make soak` makes it a million. Pages of the database are used again: its size stays after a while."""
    quota = {"quota.instances": -1, "quota.cores": -1, "quota.ram": -1}
    cloud = yard(2, **quota, **{"fake.vcpus": 64})
    sizes, memory = [], []
    for done in range(0, SERVERS, _TOGETHER):
        boot_and_delete(cloud, _TOGETHER)
        if done % (SERVERS // 4) < _TOGETHER or SERVERS < 4 * _TOGETHER:
            purge(cloud)
            sizes.append(_pages(cloud))
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
            assert sum(rows(cloud).values()) == 0
    for agent in cloud.cloud.agents.values():
        agent._journal.forget(0)  # a minute is the least that can be configured
    assert _journal(tmp_path) == 0
    print(f"{SERVERS} servers: pages in use {sizes}, MiB {memory}")
    assert sizes[-1] <= sizes[0] * 1.5 + 50
    assert memory[-1] <= memory[1] * 1.2 + 20


def _pages(cloud: Yard) -> int:
    """In use by SQLite; PostgreSQL gives them back when it vacuums."""
    with cloud.placement.database.read() as connection:
        if cloud.placement.database.is_postgresql:
            return 0
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        return int(pages) - int(connection.exec_driver_sql("PRAGMA freelist_count").scalar_one())


def _journal(directory: Path) -> int:
    """Tasks that the agents remember."""
    total = 0
    for path in directory.glob("agents/agents/*/journal.sqlite"):
        with sqlite3.connect(path) as file:
            total += file.execute("SELECT count(*) FROM tasks").fetchone()[0]
    return total
