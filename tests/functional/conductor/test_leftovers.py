"""Which of the machines that a host asks about nobody needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.bus.contract import SWEEP, Heartbeat, HeldMachine
from moorage.conductor.chores import leftovers
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import operations, servers
from moorage.ledger import queue

HERE, THERE = uuids.generate(), uuids.generate()


class Books:
    def __init__(self, url: str) -> None:
        connected = engine.connect(url)
        migrate.sync(connected)
        self.database = Database(connected)

    def server(self, node: str | None, *, deleted: bool = False, at_work: bool = False) -> str:
        uuid = uuids.generate()
        row: dict[str, Any] = {
            "uuid": uuid,
            "project_id": "p",
            "user_id": "u",
            "name": "s",
            "hostname": "s",
            "reservation_id": "r",
            "flavor": {},
            "flavorid": "1",
            "vm_state": "active",
            "host": None if node is None else "host-1",
            "node_uuid": node,
            "deleted_at": utcnow() if deleted else None,
        }
        with self.database.write() as connection:
            made = connection.execute(sa.insert(servers).values(row).returning(servers.c.id)).scalar_one()
            operation = queue.enqueue(connection, made, "build", {})
            if not at_work:
                done = sa.update(operations).where(operations.c.id == operation)
                connection.execute(done.values(finished_at=utcnow()))
        return uuid

    def swept(self, *asked: str, host: str = "host-1") -> set[str]:
        """Those of the servers whose machine, which is `HERE`, is to be swept."""
        heartbeat = Heartbeat(host, 1, held_machines=[HeldMachine(uuid, HERE) for uuid in asked])
        with self.database.read() as connection:
            told = leftovers.orders(connection, heartbeat)
        assert [task.kind for task in told] in ([], [SWEEP])
        return {one["server_uuid"] for task in told for one in task.payload["held"]}


@pytest.fixture
def books(database_url: str) -> Iterator[Books]:
    made = Books(database_url)
    yield made
    made.database.engine.dispose()


def test_what_is_held_for_servers_that_are_gone_or_elsewhere_is_swept(books: Books) -> None:
    deleted, elsewhere, failed = books.server(HERE, deleted=True), books.server(THERE), books.server(None)
    assert books.swept(deleted, elsewhere, failed) == {deleted, elsewhere, failed}


def test_what_is_held_for_servers_that_are_there_is_not(books: Books) -> None:
    server = books.server(HERE)
    assert books.swept(server) == set()
    assert books.swept(server, host="host-2") == set(), "it has lost the node, and may not know it yet"


def test_as_long_as_something_is_done_to_a_server_nothing_is_swept(books: Books) -> None:
    busy = [books.server(node, at_work=True) for node in (HERE, THERE, None)]
    busy.append(books.server(HERE, deleted=True, at_work=True))
    assert books.swept(*busy) == set()


def test_servers_that_nobody_knows_are_nobodys_to_judge(books: Books) -> None:
    assert books.swept(uuids.generate()) == set()
    assert books.swept() == set()
