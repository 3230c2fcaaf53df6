"""The outbox of aggregates: what Placement has not been told yet, written in the transaction that changes it.

An entry is the UUID of a node whose aggregates may have changed, or of an aggregate that was deleted. Whoever
has told Placement takes it out, unless the same came up again meanwhile: then `since` is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.aggregates import unmirrored_nodes as table
from moorage.db.tables.compute import IS_PLACE, nodes
from moorage.db.upsert import Insert, upsert


@dataclass(frozen=True)
class Depth:
    """How much waits."""

    entries: int
    oldest: datetime | None
    """Since when the one waits that was not looked at for longest."""


def mark(connection: Connection, uuids: Iterable[str]) -> None:
    """These nodes came, moved or left; or these aggregates were deleted."""
    now = utcnow()
    ordered = sorted(uuids)  # by all in the same order, so that none wait for each other
    rows = [{"uuid": uuid, "since": now} for uuid in ordered]
    if rows:
        connection.execute(_upsert(connection), rows)


def mark_host(connection: Connection, host: str) -> None:
    """A host joined an aggregate or left one, and with it all its nodes, of which there may be thousands."""
    now = utcnow()
    concerned = (
        sa.select(nodes.c.uuid, sa.literal(now, table.c.since.type))
        .where(_of_host(host))
        .order_by(nodes.c.uuid)
    )
    connection.execute(_upsert(connection).from_select(["uuid", "since"], concerned))


def due(connection: Connection, most: int) -> dict[str, datetime]:
    """What waits, with since when; the longest waiting first."""
    query = sa.select(table.c.uuid, table.c.since).order_by(table.c.since, table.c.uuid)
    return dict(connection.execute(query.limit(most)).all())


def due_of_host(connection: Connection, host: str) -> dict[str, datetime]:
    query = sa.select(table.c.uuid, table.c.since).join(nodes, nodes.c.uuid == table.c.uuid)
    return dict(connection.execute(query.where(_of_host(host))).all())


def due_among(connection: Connection, uuids: Collection[str]) -> dict[str, datetime]:
    query = sa.select(table.c.uuid, table.c.since).where(among(connection, table.c.uuid, uuids))
    return dict(connection.execute(query).all())


def take_out(connection: Connection, told: Mapping[str, datetime]) -> None:
    """Those to which nothing happened since."""
    rows = [{"of": uuid, "at": since} for uuid, since in sorted(told.items())]
    if rows:
        gone = sa.delete(table).where(table.c.uuid == sa.bindparam("of"), table.c.since == sa.bindparam("at"))
        connection.execute(gone, rows)


def postpone(connection: Connection, uuids: Collection[str]) -> None:
    """Others come first next time."""
    connection.execute(sa.update(table).where(among(connection, table.c.uuid, uuids)).values(since=utcnow()))


def depth(connection: Connection) -> Depth:
    return Depth(*connection.execute(sa.select(sa.func.count(), sa.func.min(table.c.since))).one())


def _of_host(host: str) -> sa.ColumnElement[bool]:
    return sa.and_(nodes.c.host == host, IS_PLACE)


def _upsert(connection: Connection) -> Insert:
    return upsert(connection, table, ["uuid"], renewed=["since"])
