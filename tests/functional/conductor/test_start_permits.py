"""Whether an agent that asks may make a server run."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from moorage.bus.contract import PERMIT, Heartbeat, StartQuestion, StartRequest
from moorage.compute.hosts.registry import RegistryEntry
from moorage.conductor.agents import start_permits
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import operations, servers
from moorage.ledger import queue

DOWN_TIME = 60.0
ALIVE = RegistryEntry(new=False, disabled=False)
MOVE: dict[str, Any] = {"move": {}}


class Asked(NamedTuple):
    granted: list[str]
    refused: list[str]


class Books:
    def __init__(self, database: Database) -> None:
        self.database = database

    def start(self, host: str | None = "host-1", data: dict[str, Any] | None = None) -> StartRequest:
        """A server with an operation that has told an agent to make it run."""
        row: dict[str, Any] = {
            "uuid": uuids.generate(),
            "project_id": "p",
            "user_id": "u",
            "name": "s",
            "hostname": "s",
            "reservation_id": "r",
            "flavor": {},
            "flavorid": "1",
            "vm_state": "active",
            "host": host,
            "node_uuid": None,
        }
        with self.database.write() as connection:
            made = connection.execute(sa.insert(servers).values(row).returning(servers.c.id)).scalar_one()
            operation = queue.enqueue(connection, made, "start", data or {})
        return StartRequest(row["uuid"], operation, 1)

    def change(self, start: StartRequest, **values: Any) -> None:
        with self.database.write() as connection:
            changed = sa.update(operations).where(operations.c.id == start.operation_id)
            connection.execute(changed.values(**values))

    def ask(self, *starts: StartRequest, host: str = "host-1", entry: RegistryEntry = ALIVE) -> Asked | None:
        with self.database.write() as connection:
            heartbeat = Heartbeat(host, 1, starts=StartQuestion(7, list(starts)))
            told = start_permits.orders(connection, heartbeat, entry, DOWN_TIME)
        if not told:
            return None
        (answer,) = told
        assert (answer.kind, answer.payload["question"], answer.payload["seconds"]) == (PERMIT, 7, DOWN_TIME)
        return Asked(answer.payload["granted"], answer.payload["refused"])


@pytest.fixture
def books(database: Database) -> Books:
    return Books(database)


def test_what_is_under_way_on_the_servers_host_is_granted(books: Books) -> None:
    first, second = books.start(), books.start()
    assert books.ask(first, second) == Asked([first.server_uuid, second.server_uuid], [])


def test_what_was_given_up_is_refused(books: Books) -> None:
    """As it is before an evacuation, which nothing that is under way survives."""
    start = books.start()
    books.change(start, finished_at=utcnow(), outcome="cancelled")
    assert books.ask(start) == Asked([], [start.server_uuid])


def test_an_older_attempt_is_refused(books: Books) -> None:
    start = books.start()
    books.change(start, attempt=2)
    assert books.ask(start) == Asked([], [start.server_uuid])


def test_an_operation_that_nobody_knows_is_refused(books: Books) -> None:
    start = StartRequest(uuids.generate(), 12345, 1)
    assert books.ask(start) == Asked([], [start.server_uuid])


@pytest.mark.parametrize("host", [None, "host-2"])
def test_a_host_that_the_server_is_not_on_has_to_ask_again(books: Books, host: str | None) -> None:
    """The conductor that sent the task may not have written down yet that it did; or it never will."""
    assert books.ask(books.start(host)) == Asked([], [])


def test_an_attempt_that_is_not_written_down_yet_has_to_ask_again(books: Books) -> None:
    start = books.start()
    later = StartRequest(start.server_uuid, start.operation_id, 2)
    assert books.ask(later) == Asked([], [])


def test_both_ends_of_a_move_may_do_what_they_were_told_last(books: Books) -> None:
    start = books.start("host-1", {**MOVE, "tasks": {"host-2": 1, "host-1": 0}})
    assert books.ask(start, host="host-2") == Asked([start.server_uuid], [])
    assert books.ask(start, host="host-1") == Asked([], [])
    assert books.ask(start, host="host-3") == Asked([], [])


def test_a_host_that_was_declared_dead_gets_no_answer(books: Books) -> None:
    dead = RegistryEntry(new=False, disabled=False, forced_down=True)
    assert books.ask(books.start(), entry=dead) is None


def test_who_gives_it_up_meanwhile_waits_until_it_is_written_down_that_the_host_was_heard(
    books: Books,
) -> None:
    """Else he could see the host as silent still, and have the server started elsewhere."""
    if books.database.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has one writer at a time")
    start = books.start()
    heartbeat = Heartbeat("host-1", 1, starts=StartQuestion(7, [start]))
    with books.database.write() as connection, books.database.write() as other:
        assert start_permits.orders(connection, heartbeat, ALIVE, DOWN_TIME)[0].payload["granted"]
        other.execute(sa.text("SET LOCAL lock_timeout = '200ms'"))
        with pytest.raises(sa.exc.OperationalError):
            other.execute(
                sa.update(operations).where(operations.c.id == start.operation_id).values(attempt=2)
            )
        other.rollback()
