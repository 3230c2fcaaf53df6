"""The backlog: what Placement has to be told once more, or could not be told yet, in our database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.tables.backlog import placement_backlog as table
from moorage.db.upsert import upsert

FIRST_PAUSE = timedelta(seconds=5)
LONGEST_PAUSE = timedelta(hours=1)
"""Pauses double up to this: nothing is given up, and nothing is asked for often."""


class BacklogKind(StrEnum):
    STATUS = "status"
    """Whether a host is disabled; the subject is its name."""
    PROVIDER = "provider"
    """A provider that has to go; the subject is its UUID."""


@dataclass(frozen=True)
class BacklogEntry:
    kind: BacklogKind
    subject: str
    since: datetime
    tries: int
    error: str
    """Why it could not be told; empty for what was told, and is looked at once more."""


def add(
    connection: Connection, kind: BacklogKind, subjects: Iterable[str], due_in: timedelta, error: str
) -> None:
    """One that is there already begins anew."""
    now = utcnow()
    rows = [
        {"kind": kind, "subject": subject, "since": now, "due_at": now + due_in, "tries": 0, "error": error}
        for subject in subjects
    ]
    if rows:
        fresh = ["since", "due_at", "tries", "error"]
        connection.execute(upsert(connection, table, ["kind", "subject"], renewed=fresh), rows)


def due(connection: Connection, most: int) -> list[BacklogEntry]:
    """The longest due first."""
    query = sa.select(table.c.kind, table.c.subject, table.c.since, table.c.tries, table.c.error)
    ordered = query.where(table.c.due_at <= utcnow()).order_by(table.c.due_at, table.c.subject).limit(most)
    return [BacklogEntry(BacklogKind(kind), *rest) for kind, *rest in connection.execute(ordered)]


def settle(connection: Connection, entry: BacklogEntry) -> None:
    """It is done, unless the same has come up again since."""
    connection.execute(sa.delete(table).where(_is(entry)))


def look_again(connection: Connection, entry: BacklogEntry, pause: timedelta) -> None:
    """It is done, but a writer that was stopped before its call may undo it."""
    again = {"due_at": utcnow() + pause, "tries": 0, "error": ""}
    connection.execute(sa.update(table).where(_is(entry)).values(again))


def postpone(connection: Connection, entry: BacklogEntry, error: str) -> timedelta:
    """It failed once more; answers with the time until the next try."""
    pause: timedelta = min(FIRST_PAUSE * 2 ** min(entry.tries, 20), LONGEST_PAUSE)
    change = sa.update(table).where(_is(entry))
    connection.execute(change.values(due_at=utcnow() + pause, tries=entry.tries + 1, error=error))
    return pause


def _is(entry: BacklogEntry) -> sa.ColumnElement[bool]:
    return sa.and_(
        table.c.kind == entry.kind.value, table.c.subject == entry.subject, table.c.since == entry.since
    )
