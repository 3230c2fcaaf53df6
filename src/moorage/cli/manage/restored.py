"""`moorage-manage db backup` and `db restored`: a copy of the database is made, or has become it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import msgspec
import sqlalchemy as sa
import typer
from oslo_config import cfg
from sqlalchemy.engine import Connection

from moorage.cli import settings
from moorage.cli.embedded import data_claim
from moorage.cli.errors import CommandError
from moorage.cli.options import Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.compute.audits import audit as audits
from moorage.compute.consoles import tokens
from moorage.conductor.chores import chores
from moorage.db import bulk, engine, era, migrate, revisions
from moorage.db.database import Database
from moorage.db.migrate import SchemaTooNewError
from moorage.db.tables.compute import nodes, operations
from moorage.ledger import leasing
from moorage.placement import feed

_SKIPPED = 10_000_000
"""Ids that each table leaves out, and epochs that each node does: more than a cloud gives out between a
backup and its restore. Drivers, agents and users remember some, such as those in the names of guests."""
_END_CONNECTIONS = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
)

DataDirectory = Annotated[
    Path | None,
    typer.Option("--data", help="The data directory of a `moorage up`; it may run.", show_default=False),
]


class Restored(msgspec.Struct):
    """What `db restored` has found, and done."""

    era: int
    held: bool
    waiting: int
    """Operations that were under way when the backup was made."""


def restored(
    context: typer.Context,
    release: Annotated[
        bool, typer.Option("--release", help="You have looked: what the database does not know may go.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="The data directory of a `moorage up`, which must not run before you say --release.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say that the database was restored from a backup: a new era begins.

    Run it once after each restore, before anything is started. All processes that still know the database as
    it was end by themselves; hosts forget which tasks they have done. Servers can be worked with at once. But
    operations that were under way when the backup was made wait, and no host discards a server, until you
    have looked at what `moorage audit` says, and say --release.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf db restored
    """
    if release:
        with _connected(context, data) as database:
            _tell(_release(database), as_json)
        return
    with _alone(context, data), _connected(context, data) as database:
        begun = database.transact(_begin)
        if database.is_postgresql:  # whoever comes back sees the era, and ends
            with database.read() as connection:
                connection.execute(_END_CONNECTIONS)
        _tell(begun, as_json)


def _begin(connection: Connection) -> Restored:
    """All that somebody may remember of what was there before is voided."""
    bulk.skip_numbers(connection, _SKIPPED)
    (first,) = bulk.numbers(connection, operations, 1)
    connection.execute(sa.update(nodes).values(epoch=nodes.c.epoch + _SKIPPED))
    waiting = leasing.void_leases(connection)
    chores.forget_leases(connection)
    tokens.revoke_all(connection)
    audits.abandon(connection)
    feed.clear(connection)
    begun = era.begin(connection, first)
    revisions.leap(connection, begun.number)
    return Restored(begun.number, begun.is_held, waiting)


def _release(database: Database) -> Restored:
    def release(connection: Connection) -> bool:
        return era.release(connection)

    if not database.transact(release):
        raise CommandError("nothing is held back: no restore waits for its release")
    with database.read() as connection:
        return Restored(era.current(connection).number, False, 0)


def _tell(shown: Restored, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(shown))
    elif not shown.held:
        typer.echo(f"era {shown.era}: released; what waited goes on, and hosts are told what to discard")
    else:
        typer.echo(f"era {shown.era} has begun; {shown.waiting} operations of before wait")
        typer.echo("start the processes, look at `moorage audit`, then say `db restored --release`")


def backup(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="Where to; must not be there yet.")],
    data: DataDirectory = None,
) -> None:
    """Copy a SQLite database, as it is at one moment, beside whoever uses it.

    For PostgreSQL, use pg_dump --format=custom.

    Example: moorage-manage db backup /var/backups/moorage.sqlite --data data
    """
    conf = _settings(context, data)
    url = sa.make_url(conf.database.connection)
    if url.get_backend_name() != "sqlite" or not url.database:
        raise CommandError("only a file of SQLite's is copied here: for PostgreSQL, use pg_dump")
    if file.exists():
        raise CommandError(f"{file} is there already")
    if not Path(url.database).is_file():
        raise CommandError(f"there is no database {url.database}")
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # it has users' secrets
    except OSError as error:
        raise CommandError(f"{file} can't be written: {error.strerror}") from error
    with sqlite3.connect(url.database) as source, sqlite3.connect(file) as copy:
        source.backup(copy)
    typer.echo(f"{url.database} -> {file}")


def _settings(context: typer.Context, data: Path | None) -> cfg.ConfigOpts:
    if data is None:
        return settings.read(context.obj, {})
    file = data / "moorage.sqlite"
    if not file.is_file():
        raise CommandError(f"there is no database {file}")
    return settings.read(context.obj, {"database.connection": f"sqlite:///{file}"})


@contextmanager
def _alone(context: typer.Context, data: Path | None) -> Iterator[None]:
    """Nobody else has the directory meanwhile, if there is one. A backup of an older release's is brought up,
    as `moorage up` does: that must not run before."""
    if data is None:
        yield
        return
    conf = _settings(context, data)
    with data_claim.claim(data):
        connected = engine.from_conf(conf)
        with suppress(SchemaTooNewError):  # told with the sentence that all commands have for it
            migrate.sync(connected)
        connected.dispose()
        yield


@contextmanager
def _connected(context: typer.Context, data: Path | None) -> Iterator[Database]:
    conf = _settings(context, data)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    try:
        yield database
    finally:
        database.engine.dispose()
