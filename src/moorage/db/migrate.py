"""The schema's version: alembic, driven from code so that no ini file is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine

from moorage.db.engine import IMMEDIATE

_MIGRATIONS = Path(__file__).parent / "migrations"


def sync(engine: Engine) -> None:
    """Bring the database to the newest schema; nothing happens if it is there already, or if it fails."""
    if version(engine) == newest():
        return
    writing = engine.execution_options(**{IMMEDIATE: True})
    with writing.connect() as connection, _foreign_keys_deferred(connection), connection.begin():
        if engine.dialect.name == "postgresql":  # a large table takes its time
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        _check_foreign_keys(connection)


@contextmanager
def _foreign_keys_deferred(connection: Connection) -> Iterator[None]:
    """On SQLite a table is changed by making another in its place, and dropping one that others refer to
    would delete their rows; it has to be told before the transaction begins."""
    if connection.dialect.name != "sqlite":
        yield
        return
    line: Any = connection.connection.driver_connection
    line.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        line.execute("PRAGMA foreign_keys=ON")


def _check_foreign_keys(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        if broken:
            tables = ", ".join(sorted({str(row[0]) for row in broken}))
            raise RuntimeError(
                f"rows of {tables} refer to rows that do not exist; the schema stays as it was"
            )


def version(engine: Engine) -> str | None:
    """The schema that the database has; None for an empty one."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


@cache
def newest() -> str:
    """The schema that this code needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config
