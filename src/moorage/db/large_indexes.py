"""Indexes of tables that may be large: built while others write, and again if that was cut off."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.db import declared
from moorage.db.declared import MIGRATIONS

LOG = logging.getLogger(__name__)

_VALID_ON_POSTGRESQL = sa.text(
    "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
    " WHERE pg_table_is_visible(c.oid) AND c.relname = ANY(:names)"
)


def wanted(version: str, scripts: Path = MIGRATIONS) -> Mapping[str, str]:
    """What a schema of this version has: "table (columns)" by name. A later word on one counts, and an empty
    one takes it away."""
    found: dict[str, str] = {}
    for migration in declared.migrations(scripts):
        if migration.revision <= version:
            found.update(migration.indexes)
    return {name: definition for name, definition in found.items() if definition}


def missing(engine: Engine, indexes: Mapping[str, str]) -> list[str]:
    """Those that are not there, or of no use since their building was cut off."""
    with engine.connect() as connection:
        there = _there(connection, list(indexes))
    return [name for name in indexes if not there.get(name)]


def build(engine: Engine, indexes: Mapping[str, str]) -> Sequence[str]:
    """Those that are missing; each is there as a whole, or built again the next time."""
    if not indexes:
        return []
    return _concurrently(engine, indexes) if _is_postgresql(engine) else _at_once(engine, indexes)


def _concurrently(engine: Engine, indexes: Mapping[str, str]) -> Sequence[str]:
    built = []
    with _outside_of_transactions(engine) as connection:
        there = _there(connection, list(indexes))
        for name, definition in indexes.items():
            if there.get(name):
                continue
            if name in there:
                LOG.warning("the index %s was not finished, and is built again", name)
                connection.exec_driver_sql(f"DROP INDEX CONCURRENTLY {name}")
            connection.exec_driver_sql(f"CREATE INDEX CONCURRENTLY {name} ON {definition}")
            built.append(name)
    return built


@contextmanager
def _outside_of_transactions(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as pooled:
        connection = pooled.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("SET statement_timeout = 0")
        try:
            yield connection
        finally:
            connection.invalidate()  # nobody else shall have to wait for ever


def _at_once(engine: Engine, indexes: Mapping[str, str]) -> Sequence[str]:
    """SQLite's one writer waits anyway."""
    built = missing(engine, indexes)
    with engine.begin() as connection:
        for name in built:
            connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {name} ON {indexes[name]}")
    return built


def _there(connection: Connection, names: list[str]) -> dict[str, bool]:
    """By name, whether it is whole."""
    if not names:
        return {}
    if connection.dialect.name == "postgresql":
        found = connection.execute(_VALID_ON_POSTGRESQL, {"names": names})
        return {str(name): bool(valid) for name, valid in found}
    listed = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'index'").scalars()
    return {str(name): True for name in listed}


def _is_postgresql(engine: Engine) -> bool:
    return engine.dialect.name == "postgresql"
