"""What a process knows of aggregates: kept while nothing changes, and never older than the last change."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.compute.aggregates import aggregates
from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.db.tables.compute import services


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    migrate.sync(connected)
    with connected.begin() as connection:
        row = {"uuid": uuids.generate(), "host": "h1", "binary": "nova-compute", "version": 1, "facts": {}}
        connection.execute(sa.insert(services).values(**row, seen_at=utcnow()))
    yield Database(connected)
    connected.dispose()


def queries(database: Database, known: KnownAggregates) -> int:
    """How many a look costs, besides the small question whether there is anything new."""
    counted: list[str] = []

    def count(*arguments: object) -> None:
        counted.append(str(arguments[2]))

    sa.event.listen(database.engine, "before_cursor_execute", count)
    known.facts()
    sa.event.remove(database.engine, "before_cursor_execute", count)
    return len(counted)


def test_nothing_is_read_again_until_something_changes(database: Database) -> None:
    known = KnownAggregates(database)
    created = database.transact(lambda connection: aggregates.create(connection, "east", "east"))
    first = known.facts()
    assert first.zones == {"east": frozenset({created.uuid})}
    assert known.facts() is first
    assert queries(database, known) == 0
    database.transact(lambda connection: aggregates.create(connection, "west", "west"))
    assert queries(database, known) > 0


def test_every_kind_of_change_is_seen_at_once(database: Database) -> None:
    known, other = KnownAggregates(database), KnownAggregates(database)
    made = database.transact(lambda connection: aggregates.create(connection, "east", "east"))
    for look in (known, other):
        assert look.facts().zones.keys() == {"east"}
        assert look.facts().zone_of == {}
    database.transact(lambda connection: aggregates.add_host(connection, made.id, "h1"))
    assert known.facts().zone_of == other.facts().zone_of == {"h1": "east"}
    ratio = {"cpu_allocation_ratio": "2"}
    database.transact(lambda connection: aggregates.change(connection, made.id, metadata=ratio))
    assert known.facts().ratios == {"h1": {"VCPU": 2.0}}
    database.transact(lambda connection: aggregates.remove_host(connection, made.id, "h1"))
    assert known.facts().zone_of == {}
    assert known.facts().ratios == {}
    database.transact(lambda connection: aggregates.delete(connection, made.id))
    assert known.facts().zones == other.facts().zones == {}


def test_metadata_that_makes_no_sense_is_told_once(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    known = KnownAggregates(database)
    made = database.transact(lambda connection: aggregates.create(connection, "odd", None))
    odd = {"ram_allocation_ratio": "lots"}
    database.transact(lambda connection: aggregates.change(connection, made.id, metadata=odd))
    with caplog.at_level(logging.WARNING):
        known.facts()
        known.facts()
    (record,) = caplog.records
    assert "aggregate odd: ram_allocation_ratio must be a number above 0, not 'lots'" in record.getMessage()
