"""Boots and deletes without end leave nothing that grows: neither rows, pages, a journal nor memory.

`make soak` makes it a million. What takes months elsewhere is made short: servers are asked for and deleted
by the hundred, hosts only pretend, what is over is purged at once, and agents forget after a minute.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.growth import purging
from moorage.compute.servers import servers, soft_deletes
from moorage.compute.servers.actions import Origin
from moorage.core.clock import utcnow
from moorage.db.tables import compute as tables
from moorage.db.tables.metadata import METADATA
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

SERVERS = int(os.environ.get("SOAK_SERVERS", "1200"))
TOGETHER = 400
SAMPLES = 20
OPTIONS: dict[str, Any] = {
    "quota.instances": -1,
    "quota.cores": -1,
    "quota.ram": -1,
    "fake.vcpus": TOGETHER,
    "fake.ram_mb": 1024 * TOGETHER,
    "conductor.batch": TOGETHER // 2,
    "conductor.audit_interval": 0,
    "database.sqlite_synchronous": "NORMAL",
    "placement.feed_retention": 60,
    "agent.remember_seconds": 60,
    "agent.full_report_interval": 60,
    "agent.heartbeat_interval": 5,
    "agent.inventory_interval": 5,
}
FEED = "changes"
"""Kept for a minute: how long it is follows from how fast this machine is."""


class Sizes(NamedTuple):
    """What could grow, once so many servers have come and gone."""

    done: int
    minutes: float
    rows: int
    """In all tables but the change feed, which is kept for a minute."""
    changes: int
    pages: int
    """Of the database, in use or not."""
    journal: int
    """Tasks that agents remember."""
    journal_pages: int
    memory: int
    """MiB of this process that are resident now."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:,}" for name, value in self._asdict().items())


@pytest.mark.timeout(300 + SERVERS // 50)
def test_many_boots_and_deletes_leave_nothing_that_grows(yard: Callable[..., Yard], tmp_path: Path) -> None:
    cloud = yard(2, **OPTIONS)
    began, rounds = time.monotonic(), max(SERVERS // TOGETHER, 3)
    seen: list[Sizes] = []
    for done in range(1, rounds + 1):
        boot_and_delete(cloud)
        assert cloud.asked.unbounded() == []
        cloud.asked.queries.clear()  # which the test itself would collect
        if done % max(rounds // SAMPLES, 1) == 0:
            seen.append(sizes(cloud, tmp_path, done * TOGETHER, began))
            print(seen[-1], flush=True)
    for agent in cloud.cloud.agents.values():
        agent._journal.forget(0)
    assert sizes(cloud, tmp_path, SERVERS, began).journal == 0
    check(seen)


def check(seen: Sequence[Sizes]) -> None:
    """Nothing is more at the end than it was after a quarter of the time, but for what comes and goes."""
    early, end = seen[len(seen) // 4], seen[-1]
    assert end.rows == early.rows
    assert end.pages <= early.pages * 1.5 + 200
    assert end.journal_pages <= early.journal_pages * 1.5 + 200
    assert end.memory <= early.memory * 1.1 + 20


def boot_and_delete(cloud: Yard) -> None:
    server = {"name": "s", "flavorRef": "1", "imageRef": cloud.image(), "networks": "auto"}
    body = {"server": {**server, "min_count": TOGETHER}}
    assert cloud.api.simulate_post("/v2.1/servers", json=body).status_code == 202
    await_rest(cloud)
    database = cloud.placement.database
    database.transact(delete_all)
    cloud.cloud._conductor.runner.wake()
    await_rest(cloud)
    for _ in purging.batches(database.transact, utcnow()):
        pass


def delete_all(connection: Connection) -> None:
    """As requests of users do, but in one transaction; each has to be active."""
    found = connection.execute(
        sa.select(tables.servers.c.uuid, tables.servers.c.vm_state).where(
            tables.servers.c.deleted_at.is_(None)
        )
    ).all()
    assert [state for _, state in found] == ["active"] * TOGETHER
    for uuid, _ in found:
        server = servers.lock(connection, uuid)
        soft_deletes.delete(connection, server, Origin("req-soak", "user", server.project_id), 0)


def await_rest(cloud: Yard) -> None:
    wait_until(cloud.is_at_rest, "the ledger to be empty", 300)


def sizes(cloud: Yard, directory: Path, done: int, began: float) -> Sizes:
    rows = {table.name: 0 for table in METADATA.sorted_tables}
    database = cloud.placement.database
    with database.read() as connection:
        for table in METADATA.sorted_tables:
            rows[table.name] = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
        pages = 0  # PostgreSQL gives them back when it vacuums
        if not database.is_postgresql:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    feed = rows.pop(FEED)
    tasks, journal_pages = journals(directory)
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20
    minutes = round((time.monotonic() - began) / 60, 1)
    return Sizes(done, minutes, sum(rows.values()), feed, pages, tasks, journal_pages, resident)


def journals(directory: Path) -> tuple[int, int]:
    """Tasks that the agents remember, and pages of their files."""
    tasks = pages = 0
    for path in directory.glob("agents/agents/*/journal.sqlite"):
        with sqlite3.connect(path) as file:
            tasks += file.execute("SELECT count(*) FROM tasks").fetchone()[0]
            pages += file.execute("PRAGMA page_count").fetchone()[0]
    return tasks, pages
