"""The schema's version: alembic, driven from code so that no ini file is needed.

Each process asks for the version when it starts, and few have anything to migrate: only those import alembic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.db.engine import IMMEDIATE

if TYPE_CHECKING:
    from alembic.config import Config

_MIGRATIONS = Path(__file__).parent / "migrations"
_VERSION = sa.table("alembic_version", sa.column("version_num"))


def sync(engine: Engine, wanted: str | None = None) -> None:
    """Bring the database to the newest schema; nothing happens if it is there already, or if it fails."""
    wanted = wanted or newest()
    if version(engine) == wanted:
        return
    from alembic import command

    writing = engine.execution_options(**{IMMEDIATE: True})
    with writing.connect() as connection, _foreign_keys_deferred(connection), connection.begin():
        if engine.dialect.name == "postgresql":  # a large table takes its time
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, wanted)
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
        if not sa.inspect(connection).has_table(_VERSION.name):
            return None
        found: str | None = connection.execute(sa.select(_VERSION.c.version_num)).scalar_one_or_none()
        return found


@cache
def newest() -> str:
    """The schema that this code needs: the files are named by their versions, in order."""
    return max(path.name.partition("_")[0] for path in _MIGRATIONS.glob("versions/[0-9]*_*.py"))


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    return config
