"""Migrations: the record of each move of a server from one host to another.

As long as one is active, its UUID stands for the source in Placement: it holds what the server held there,
while the server itself holds what it needs at its destination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.core.numbers import row_number
from moorage.db.among import among
from moorage.db.tables.moves import migrations


class MigrationType(StrEnum):
    RESIZE = "resize"
    MIGRATION = "migration"
    LIVE = "live-migration"
    EVACUATION = "evacuation"


class MigrationStatus(StrEnum):
    """As the API spells them."""

    ACCEPTED = "accepted"
    QUEUED = "queued"
    PREPARING = "preparing"
    RUNNING = "running"
    PRE_MIGRATING = "pre-migrating"
    MIGRATING = "migrating"
    POST_MIGRATING = "post-migrating"
    FINISHED = "finished"
    CONFIRMING = "confirming"
    REVERTING = "reverting"
    CONFIRMED = "confirmed"
    REVERTED = "reverted"
    COMPLETED = "completed"
    DONE = "done"
    CANCELLED = "cancelled"
    ERROR = "error"


OVER = frozenset(
    {
        *(MigrationStatus.CONFIRMED, MigrationStatus.REVERTED, MigrationStatus.COMPLETED),
        *(MigrationStatus.DONE, MigrationStatus.CANCELLED, MigrationStatus.ERROR),
    }
)
"""Nothing of the move is left: the server is on one host, with its allocations."""

IN_PROGRESS = (
    MigrationStatus.QUEUED,
    MigrationStatus.PREPARING,
    MigrationStatus.RUNNING,
    MigrationStatus.POST_MIGRATING,
)
"""A live migration that can be looked at as a resource of its server."""


class LiveMigrationWish(StrEnum):
    """What an administrator asks of a live migration that is under way."""

    ABORT = "abort"
    HURRY = "hurry"


@dataclass(frozen=True, slots=True)
class Migration:
    id: int
    uuid: str
    server_id: int
    server_uuid: str
    user_id: str
    project_id: str
    kind: str
    status: str
    active: bool
    source_host: str
    source_node: str
    source_node_uuid: str
    dest_host: str | None
    dest_node: str | None
    dest_node_uuid: str | None
    dest_address: str | None
    old_flavor: dict[str, Any]
    new_flavor: dict[str, Any]
    old_flavor_id: int | None
    new_flavor_id: int | None
    old_state: str
    reserved: dict[str, int]
    wish: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def in_progress(self) -> bool:
        return self.kind == MigrationType.LIVE and self.status in IN_PROGRESS


_COLUMNS = tuple(migrations.c[each.name] for each in fields(Migration))


def begin(connection: Connection, **columns: Any) -> Migration:
    """Write a new one down; its `columns` are those of the table."""
    values = {"uuid": uuids.generate(), **columns}
    made = connection.execute(sa.insert(migrations).values(**values).returning(migrations.c.id)).scalar_one()
    return _one(connection, migrations.c.id == made)


def change(
    connection: Connection, migration_id: int, status: MigrationStatus | None = None, **columns: Any
) -> None:
    """Say how far it is."""
    if status is not None:
        columns |= {"status": status.value, "active": status not in OVER}
    statement = sa.update(migrations).where(migrations.c.id == migration_id)
    connection.execute(statement.values(updated_at=utcnow(), **columns))


def end_with_server(connection: Connection, migration: Migration) -> None:
    """The server was deleted: a move that had arrived counts as confirmed, any other as failed."""
    arrived = migration.status in (MigrationStatus.FINISHED, MigrationStatus.CONFIRMING)
    change(
        connection, migration.id, MigrationStatus.CONFIRMED if arrived else MigrationStatus.ERROR, reserved={}
    )


def active(connection: Connection, server_id: int) -> Migration | None:
    """The move that a server is in the middle of: one at the most."""
    row = connection.execute(_ACTIVE, {"server": server_id}).one_or_none()
    return None if row is None else Migration(*row)


_ACTIVE = (
    sa.select(*_COLUMNS)
    .where(migrations.c.server_id == sa.bindparam("server"), migrations.c.active)
    .order_by(migrations.c.id.desc())
    .limit(1)
)


def active_of(connection: Connection, server_ids: Sequence[int]) -> dict[int, Migration]:
    """As `active`, for several servers: by the server's id."""
    query = sa.select(*_COLUMNS).where(
        among(connection, migrations.c.server_id, server_ids), migrations.c.active
    )
    found = (Migration(*row) for row in connection.execute(query.order_by(migrations.c.id)))
    return {migration.server_id: migration for migration in found}


def any_at(connection: Connection, host: str) -> bool:
    """Whether some server is on its way to a host, or has not left it for good."""
    query = sa.select(migrations.c.id).where(
        migrations.c.active, (migrations.c.source_host == host) | (migrations.c.dest_host == host)
    )
    return connection.execute(query.limit(1)).first() is not None


def find(connection: Connection, server_uuid: str, identity: str) -> Migration | None:
    """One of a server's, by its number or, for clients that have it from a list, its UUID."""
    number = row_number(identity)
    wanted = migrations.c.uuid == identity if number is None else migrations.c.id == number
    query = sa.select(*_COLUMNS).where(wanted, migrations.c.server_uuid == server_uuid)
    row = connection.execute(query).one_or_none()
    return None if row is None else Migration(*row)


def wish_of(connection: Connection, migration_id: int) -> str | None:
    query = sa.select(migrations.c.wish).where(migrations.c.id == migration_id)
    wish: str | None = connection.execute(query).scalar_one()
    return wish


def in_progress(connection: Connection, server_id: int) -> list[Migration]:
    """Its live migrations that are under way."""
    query = sa.select(*_COLUMNS).where(
        migrations.c.server_id == server_id,
        migrations.c.kind == MigrationType.LIVE.value,
        migrations.c.status.in_([status.value for status in IN_PROGRESS]),
    )
    return [Migration(*row) for row in connection.execute(query.order_by(migrations.c.id))]


@dataclass(frozen=True)
class MigrationQuery:
    """Which migrations; those that were changed last come last, unless they are paged."""

    equal: Mapping[str, str] = field(default_factory=dict)
    """By column."""
    host: str | None = None
    """At either end."""
    changed_since: datetime | None = None
    changed_before: datetime | None = None
    newest_first: bool = False
    limit: int | None = None
    marker: str | None = None
    marker_of: str | None = None
    """The one project whose migrations the caller may know of; None for all."""


def page(connection: Connection, listing: MigrationQuery) -> list[Migration]:
    table = migrations
    query = sa.select(*_COLUMNS)
    for name, value in listing.equal.items():
        query = query.where(table.c[name] == value)
    if listing.host is not None:
        query = query.where((table.c.source_host == listing.host) | (table.c.dest_host == listing.host))
    if listing.changed_since is not None:
        query = query.where(table.c.updated_at >= listing.changed_since)
    if listing.changed_before is not None:
        query = query.where(table.c.updated_at <= listing.changed_before)
    if listing.marker is not None:
        place = sa.select(table.c.created_at, table.c.id).where(table.c.uuid == listing.marker)
        if listing.marker_of is not None:
            place = place.where(table.c.project_id == listing.marker_of)
        marked = connection.execute(place).one_or_none()
        if marked is None:
            raise ComputeError(f"Marker {listing.marker} could not be found.")
        query = query.where(sa.tuple_(table.c.created_at, table.c.id) < sa.tuple_(*marked))
    if listing.newest_first:
        query = query.order_by(table.c.created_at.desc(), table.c.id.desc())
    else:
        query = query.order_by(table.c.id)
    return [
        Migration(*row)
        for row in connection.execute(query if listing.limit is None else query.limit(listing.limit))
    ]


def _one(connection: Connection, condition: sa.ColumnElement[bool]) -> Migration:
    return Migration(*connection.execute(sa.select(*_COLUMNS).where(condition)).one())
