"""The change feed on PostgreSQL, where changes become visible in another order than they were numbered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.placement import feed
from moorage.placement.feed import ChangeKind, Changes, PostgresqlReader, QuickRead


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    database = Database(engine.connect(postgres_url))
    migrate.sync(database.engine)
    yield database
    database.engine.dispose()


@pytest.fixture
def reader(database: Database) -> PostgresqlReader:
    reader = PostgresqlReader()
    with database.snapshot() as connection:
        reader.start(connection)
    return reader


def change(database: Database, provider_id: int) -> None:
    with database.write() as connection:
        feed.append(connection, ChangeKind.PROVIDER, [provider_id])


def look(database: Database, reader: PostgresqlReader) -> Changes:
    """Read, and see that the quick question has the same answer."""
    probe = feed.probe(database.engine)
    quick = reader.quick_read(probe)
    probe.close()
    with database.read() as connection:
        found = reader.read(connection)
    assert quick == QuickRead([], more=bool(found))
    return found


def test_each_change_is_told_once(database: Database, reader: PostgresqlReader) -> None:
    change(database, 1)
    change(database, 2)
    assert look(database, reader).providers == {1, 2}
    assert not look(database, reader)
    change(database, 1)
    assert look(database, reader).providers == {1}


def test_what_begins_first_and_commits_last_is_not_lost(database: Database, reader: PostgresqlReader) -> None:
    with database.write() as early:
        feed.append(early, ChangeKind.PROVIDER, [1])
        change(database, 2)
        assert look(database, reader).providers == {2}
        with database.write() as late:
            feed.append(late, ChangeKind.PROVIDER, [3])
            assert not look(database, reader)
        assert look(database, reader).providers == {3}
    assert look(database, reader).providers == {1}
    assert not look(database, reader)


def test_what_is_rolled_back_is_never_told(database: Database, reader: PostgresqlReader) -> None:
    with database.engine.connect() as connection:
        feed.append(connection, ChangeKind.PROVIDER, [1])
        connection.rollback()
    change(database, 2)
    assert look(database, reader).providers == {2}


def test_a_transaction_that_stays_open_does_not_make_old_rows_come_again(
    database: Database, reader: PostgresqlReader
) -> None:
    with database.write() as forgotten:
        feed.append(forgotten, ChangeKind.PROVIDER, [1])
        for provider_id in range(2, 52):
            change(database, provider_id)
        assert len(look(database, reader).providers) == 50
        assert _rows_of_a_look(database, reader) == 1  # the one that carries the snapshot
    assert look(database, reader).providers == {1}


def _rows_of_a_look(database: Database, reader: PostgresqlReader) -> int:
    counts: list[int] = []

    def after(_connection: sa.Connection, cursor: Any, *_more: Any) -> None:
        counts.append(cursor.rowcount)

    sa.event.listen(database.engine, "after_cursor_execute", after)
    look(database, reader)
    sa.event.remove(database.engine, "after_cursor_execute", after)
    return counts[0]
