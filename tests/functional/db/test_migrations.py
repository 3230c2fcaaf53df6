"""The migrations end in just the tables that the code knows, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from moorage.db import engine, migrate
from moorage.db.tables import aggregates, backlog, compute, moves, network, placement, revisions
from moorage.db.tables.metadata import METADATA

AREAS = (aggregates, backlog, compute, moves, network, placement, revisions)


@pytest.mark.filterwarnings("ignore:Did not recognize type 'xid8'")
def test_migrated_database_has_the_tables_of_the_code(empty_database_url: str) -> None:
    database = engine.connect(empty_database_url)
    migrate.sync(database)
    with database.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    database.dispose()
    assert [difference for difference in differences if not _is_feed_column(difference)] == []


def _is_feed_column(difference: Any) -> bool:
    """`changes.xid` exists on PostgreSQL only, so the tables of the code don't have it."""
    return "xid" in str(difference)


def test_sync_is_repeatable_and_tells_the_version(empty_database_url: str) -> None:
    database = engine.connect(empty_database_url)
    assert migrate.version(database) is None
    migrate.sync(database)
    migrate.sync(database)
    assert migrate.version(database) == migrate.newest()
    database.dispose()
