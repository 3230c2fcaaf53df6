"""Whether a service is up: the one rule for it, in Python and in SQL.

A service is up if it sent a heartbeat within the time after which it counts as down, to the very end of
that time, and nobody has declared it dead.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.core.clock import utcnow
from moorage.db.tables.compute import services

IS_UP = "s.seen_at >= {alive_since} AND NOT s.forced_down"
"""For a statement that is written by hand, in which `services` is `s`."""


def alive_since(down_after: timedelta) -> datetime:
    """The earliest last heartbeat of a service that is up."""
    return utcnow() - down_after


def is_up(down_after: timedelta) -> sa.ColumnElement[bool]:
    return sa.and_(services.c.seen_at >= alive_since(down_after), services.c.forced_down.is_(False))


def was_heard(seen_at: datetime | None, down_after: timedelta) -> bool:
    """Whether its last heartbeat is recent enough, whatever anybody has declared."""
    return seen_at is not None and seen_at >= alive_since(down_after)


def hosts_up(connection: Connection, down_after: timedelta) -> set[str]:
    """The hosts whose agents are up."""
    query = sa.select(services.c.host).where(services.c.binary == AGENT_BINARY, is_up(down_after))
    return set(connection.execute(query).scalars())


def hosts_heard(connection: Connection, since: datetime) -> set[str]:
    """The hosts whose agents have sent a heartbeat, whatever anybody has declared."""
    query = sa.select(services.c.host).where(services.c.binary == AGENT_BINARY, services.c.seen_at >= since)
    return set(connection.execute(query).scalars())
