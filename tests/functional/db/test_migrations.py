"""The migrations end in just the tables that the code knows, on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from moorage.db import declared, engine, migrate, schema_fit
from moorage.db.tables import (
    aggregates,
    audits,
    backlog,
    compute,
    consoles,
    drains,
    eras,
    images,
    machines,
    moves,
    network,
    placement,
    revisions,
    schema_support,
)
from moorage.db.tables.metadata import METADATA

AREAS = (
    *(aggregates, audits, backlog, compute, consoles, drains, eras, images, machines, moves, network),
    *(placement, revisions, schema_support),
)
NUMBERED = [table for table in METADATA.tables.values() if [*table.primary_key.columns.keys()] == ["id"]]


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


def test_the_files_are_named_by_their_versions_in_order() -> None:
    config = Config()
    config.set_main_option("script_location", "moorage.db:migrations")
    scripts = ScriptDirectory.from_config(config)
    in_order = [script.revision for script in scripts.walk_revisions()][::-1]
    assert in_order == sorted(in_order)
    assert declared.newest() == in_order[-1]


def test_no_table_of_the_code_gives_an_id_twice() -> None:
    """PostgreSQL's sequences don't anyway."""
    assert {table.name for table in NUMBERED if not table.dialect_options["sqlite"]["autoincrement"]} == set()


def test_no_table_of_a_migrated_database_gives_an_id_twice(tmp_path: Path) -> None:
    """Alembic's comparison does not look at this."""
    database = engine.connect(f"sqlite:///{tmp_path}/moorage.sqlite")
    migrate.sync(database)
    for table in NUMBERED:
        assert "AUTOINCREMENT" in stored_statement(database, table.name), table.name
    database.dispose()


def stored_statement(database: sa.Engine, table: str) -> str:
    query = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :name")
    with database.connect() as connection:
        return str(connection.execute(query, {"name": table}).scalar_one())


def test_sync_is_repeatable_and_tells_the_version(empty_database_url: str) -> None:
    database = engine.connect(empty_database_url)
    assert schema_fit.version(database) is None
    migrate.sync(database)
    migrate.sync(database)
    assert schema_fit.version(database) == declared.newest()
    database.dispose()


def test_two_that_sync_at_once_wait_for_each_other(empty_database_url: str) -> None:
    """As `moorage up` and `moorage-manage db sync` may, or two operators."""
    engines = [engine.connect(empty_database_url) for _ in range(4)]
    with ThreadPoolExecutor(len(engines)) as threads:
        list(threads.map(migrate.sync, engines))
    for database in engines:
        assert schema_fit.version(database) == declared.newest()
        database.dispose()
