"""Many rows at once come out as they went in, by whichever way they went."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import bulk, engine
from moorage.db.database import Database
from moorage.db.tables.placement import providers

COLUMNS = ("id", "uuid", "name", "generation", "parent_id", "root_id", "updated_at")
ODD = (
    "tab\there",
    "line\nbreak",
    "return\rhere",
    "back\\slash",
    "\\N",
    "\\t",
    "quote'\"",
    "ünïcödé 船",
    "\\.",
)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    yield Database(connected)
    connected.dispose()


@pytest.mark.parametrize("count", [len(ODD), 2_000])
def test_rows_come_out_as_they_went_in(database: Database, count: int) -> None:
    names = [f"{ODD[number % len(ODD)]}{number // len(ODD) or ''}" for number in range(count)]
    now = utcnow()

    def write(connection: sa.Connection) -> list[tuple[object, ...]]:
        ids = bulk.numbers(connection, providers, count)
        rows = [
            (new_id, uuids.generate(), name, 7, None, new_id, now)
            for new_id, name in zip(ids, names, strict=True)
        ]
        bulk.insert(connection, providers, COLUMNS, rows)
        return [*rows]

    written = database.transact(write)
    with database.read() as connection:
        query = sa.select(*(providers.c[name] for name in COLUMNS)).order_by(providers.c.id)
        assert [tuple(row) for row in connection.execute(query)] == sorted(written)
    with database.write() as connection:
        taken = {row[0] for row in written}
        assert taken.isdisjoint(bulk.numbers(connection, providers, 10))


def test_a_row_that_is_there_is_told_as_by_any_statement(database: Database) -> None:
    def write(connection: sa.Connection) -> None:
        ids = bulk.numbers(connection, providers, 1_000)
        rows = [(new_id, uuids.generate(), "the same", 0, None, new_id, utcnow()) for new_id in ids]
        bulk.insert(connection, providers, COLUMNS, rows)

    with pytest.raises(sa.exc.IntegrityError):
        database.transact(write)
    with database.read() as connection:
        assert not connection.execute(sa.select(providers.c.id)).all()
