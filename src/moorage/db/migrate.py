"""Bringing the schema up: alembic, driven from code so that no ini file is needed.

In two parts. All changes are one transaction, so a database has them or stays as it was; then large indexes
are built, which on PostgreSQL takes no lock that would keep others from writing, and goes on where it was
cut off. A change that takes something away waits until the data migrations that it needs are complete.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.db import data_migrations, declared, large_indexes, schema_fit
from moorage.db.data_migrations import DataMigration
from moorage.db.declared import MIGRATIONS, DeclaredMigration
from moorage.db.engine import IMMEDIATE
from moorage.db.schema_fit import Fit

if TYPE_CHECKING:
    from alembic.config import Config

_TURN = "moorage: the schema is being changed"
_LOOK_SECONDS = 0.2


class Synced(msgspec.Struct, frozen=True):
    """What became of it."""

    before: str | None
    after: str
    indexes: Sequence[str] = ()
    """Large ones that were built."""
    waits_for: Sequence[str] = ()
    """Data migrations that have to be complete before the rest."""


class SchemaTooNewError(Exception):
    """This release may not run on the schema that there is."""


def sync(
    engine: Engine,
    wanted: str | None = None,
    *,
    scripts: Path = MIGRATIONS,
    known: Sequence[DataMigration] = data_migrations.ALL,
) -> Synced:
    """Bring the database to the newest schema, or as far as it may go; a newer one is left as it is."""
    with _alone(engine):
        fit = schema_fit.look(engine, scripts)
        if fit.fit is Fit.TOO_NEW:
            raise SchemaTooNewError(f"the schema {fit.sentence}")
        if fit.fit is Fit.NEWER:
            return Synced(fit.found, str(fit.found))
        waits_for: Sequence[str] = ()
        if fit.found != (wanted or fit.newest):
            waits_for = _upgrade(engine, wanted or fit.newest, scripts, known)
        after = schema_fit.version(engine)
        assert after is not None
        built = large_indexes.build(engine, large_indexes.wanted(after, scripts))
        return Synced(fit.found, after, built, waits_for)


def _upgrade(engine: Engine, wanted: str, scripts: Path, known: Sequence[DataMigration]) -> Sequence[str]:
    """As far as data migrations allow; those that don't."""
    writing = engine.execution_options(**{IMMEDIATE: True})
    with writing.connect() as connection, _foreign_keys_deferred(connection), connection.begin():
        if engine.dialect.name == "postgresql":  # a large table takes its time
            connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        waits_for: Sequence[str] = ()
        for migration in _steps(connection, wanted, scripts):
            waits_for = data_migrations.incomplete(connection, migration.needs, known)
            if waits_for:
                break
            _run(connection, migration.revision, scripts)
        reached = schema_fit.version_by(connection)
        if reached is not None:
            schema_fit.support(connection, declared.oldest(reached, scripts))
        _check_foreign_keys(connection)
    return waits_for


def _steps(connection: Connection, wanted: str, scripts: Path) -> list[DeclaredMigration]:
    """Those to come, of which what needs nothing is left to alembic in one go."""
    found = schema_fit.version_by(connection) or ""
    coming = [one for one in declared.migrations(scripts) if found < one.revision <= wanted]
    last = len(coming) - 1
    return [one for at, one in enumerate(coming) if one.needs or at == last or coming[at + 1].needs]


def _run(connection: Connection, revision: str, scripts: Path) -> None:
    from alembic import command

    config = _config(scripts)
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


@contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """One at a time. Who waits asks again and again, in no transaction: an index that is built without locks
    would wait for that to end."""
    if engine.dialect.name != "postgresql":
        yield
        return
    turn = sa.select(sa.func.pg_try_advisory_xact_lock(sa.func.hashtextextended(_TURN, 0)))
    with engine.connect() as connection:
        while not connection.execute(turn).scalar_one():
            connection.rollback()
            time.sleep(_LOOK_SECONDS)
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield


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


def _config(scripts: Path) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts))
    return config
