"""A message that a database refuses, whoever wrote it, costs only itself."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from moorage.bus.contract import SAY_AGAIN, Heartbeat, NodeFacts, Result, Task
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.conductor.agents.inbox import UNUSABLE, Inbox
from moorage.core import uuids
from moorage.db.database import Database
from moorage.db.tables.compute import operations, services
from tests.functional.conductor import ledger_rows

TOO_LARGE = 1 << 70


@pytest.fixture
def told() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def inbox(database: Database, told: list[tuple[str, str]]) -> Inbox:
    def cast(host: str, tasks: list[Task]) -> None:
        told.extend((host, task.kind) for task in tasks)

    return Inbox(database, KnownAggregates(database), lambda: None, cast)


def dropped(kind: str) -> float:
    return float(UNUSABLE.labels(kind)._value.get())


def test_a_heartbeat_is_dropped_and_said_again(
    inbox: Inbox, database: Database, told: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    node = NodeFacts(uuids.generate(), "one", "QEMU")
    inbox.on_heartbeat(Heartbeat("one", 5, nodes=[node]))
    told.clear()
    before = dropped("heartbeat")
    inbox.on_heartbeat(Heartbeat("one", TOO_LARGE, nodes=[node]))
    assert dropped("heartbeat") == before + 1
    assert "can't be written down" in caplog.text
    assert ("one", SAY_AGAIN) not in told

    inbox.on_heartbeat(Heartbeat("two", 5, nodes=[NodeFacts(uuids.generate(), "two", "QEMU")]))
    assert ("two", SAY_AGAIN) not in told
    inbox.on_heartbeat(Heartbeat("one", 5))
    assert told.count(("one", SAY_AGAIN)) == 1
    inbox.on_heartbeat(Heartbeat("one", 5))
    assert told.count(("one", SAY_AGAIN)) == 1
    with database.read() as connection:
        assert set(connection.scalars(sa.select(services.c.host))) == {"one", "two"}


def test_a_result_costs_the_others_nothing(inbox: Inbox, database: Database, database_url: str) -> None:
    """SQLite knows no number that is too large to look for."""
    operation_id = ledger_rows.enqueue(database, ledger_rows.make_server(database))
    server = uuids.generate()
    before = dropped("result")
    inbox.on_results([Result(TOO_LARGE, server, 1, True), Result(operation_id, server, 1, True)])
    assert dropped("result") == before + ("postgresql" in database_url)
    with database.read() as connection:
        kept = connection.scalars(sa.select(operations.c.result).where(operations.c.id == operation_id)).one()
    assert kept["ok"] is True
