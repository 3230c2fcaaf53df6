"""Findings: what differs, since when. They outlive who found them, so that two sightings are two."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.audits import audit_findings as table
from moorage.db.upsert import upsert

MEND = "mend"
"""The kind of operation that repairs something about a server."""


ANEW = "anew"
"""Among the facts of a suspect, for `mend`: whatever the server holds, its flavor or node is another now."""


class Ending(StrEnum):
    REPAIRED = "repaired"
    GONE = "gone"
    """By itself, or by somebody else's hand."""


class Suspect(msgspec.Struct, frozen=True):
    """Something that a quick look found odd."""

    subject: str
    """What it is about: names it among all that a check looks at."""
    facts: dict[str, Any] = {}
    """What a closer look has to know."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Something that certainly differed a moment ago."""

    suspect: Suspect
    sentence: str
    """What differs."""
    remedy: str = ""
    """What a repair would do; empty if there is none."""
    safe: bool = False
    """A repair can't be wrong, so that nobody has to be asked."""
    fingerprint: str = ""
    """What has to be the same at the next look for it to be the same drift."""
    host: str = ""
    server_uuid: str = ""
    operation: str = ""
    """The kind of operation on the server that a repair is; empty if no server is concerned."""


class Finding(msgspec.Struct, frozen=True):
    id: int
    check_name: str
    subject: str
    fingerprint: str
    sentence: str
    remedy: str
    safe: bool
    host: str
    server_uuid: str
    suspect: Suspect
    first_seen_at: datetime
    seen_at: datetime
    confirmed_at: datetime | None
    ended_at: datetime | None
    ending: Ending | None
    error: str


_COLUMNS = tuple(table.c[name] for name in Finding.__struct_fields__)
_FRESH = ("fingerprint", "sentence", "remedy", "safe", "host", "server_uuid", "suspect", "seen_at")


def see(connection: Connection, check: str, found: Drift, grace: timedelta) -> None:
    """Write a sighting down; it is confirmed if the same was seen before, and the grace period is over."""
    now = utcnow()
    row = {
        name: getattr(found, name)
        for name in ("fingerprint", "sentence", "remedy", "safe", "host", "server_uuid")
    }
    row |= {"check_name": check, "subject": found.suspect.subject, "seen_at": now, "first_seen_at": now}
    same = sa.and_(table.c.fingerprint == found.fingerprint, table.c.ended_at.is_(None))
    old_enough = sa.and_(same, table.c.first_seen_at <= now - grace)
    moment = sa.literal(now, table.c.seen_at.type)
    computed = {
        "first_seen_at": sa.case((same, table.c.first_seen_at), else_=moment),
        "confirmed_at": sa.case(
            (old_enough, sa.func.coalesce(table.c.confirmed_at, moment)),
            (same, table.c.confirmed_at),
            else_=None,
        ),
        "error": sa.case((same, table.c.error), else_=""),
        "ended_at": sa.null(),
        "ending": sa.null(),
    }
    statement = upsert(connection, table, ["check_name", "subject"], renewed=_FRESH, computed=computed)
    connection.execute(statement.values(**row, suspect=msgspec.to_builtins(found.suspect)))


def open_ones(connection: Connection, checks: Sequence[str], *, confirmed: bool) -> list[Finding]:
    """The oldest first."""
    is_confirmed = table.c.confirmed_at.is_not(None)
    query = sa.select(*_COLUMNS).where(
        table.c.ended_at.is_(None),
        among(connection, table.c.check_name, checks),
        is_confirmed if confirmed else ~is_confirmed,
    )
    return [_of(row) for row in connection.execute(query.order_by(table.c.first_seen_at, table.c.id))]


def repaired_since(connection: Connection, checks: Sequence[str], since: datetime) -> list[Finding]:
    query = sa.select(*_COLUMNS).where(
        table.c.ended_at >= since,
        table.c.ending == Ending.REPAIRED.value,
        among(connection, table.c.check_name, checks),
    )
    return [_of(row) for row in connection.execute(query.order_by(table.c.first_seen_at, table.c.id))]


def end(connection: Connection, finding_id: int, ending: Ending) -> None:
    ended = {"ended_at": utcnow(), "ending": ending.value, "error": ""}
    connection.execute(sa.update(table).where(table.c.id == finding_id).values(ended))


def end_unseen(connection: Connection, check: str, since: datetime) -> None:
    """A look at everything that began then has not seen these any more."""
    ended = {"ended_at": utcnow(), "ending": Ending.GONE.value}
    unseen = sa.and_(table.c.check_name == check, table.c.ended_at.is_(None), table.c.seen_at < since)
    connection.execute(sa.update(table).where(unseen).values(ended))


def fail(connection: Connection, finding_id: int, error: str) -> None:
    """A repair did not work."""
    connection.execute(sa.update(table).where(table.c.id == finding_id).values(error=error))


def count(connection: Connection) -> dict[str, int]:
    """How many are confirmed, by check."""
    query = (
        sa.select(table.c.check_name, sa.func.count())
        .where(table.c.ended_at.is_(None), table.c.confirmed_at.is_not(None))
        .group_by(table.c.check_name)
    )
    return dict(connection.execute(query).all())


def _of(row: sa.Row[Any]) -> Finding:
    return msgspec.convert(dict(zip(Finding.__struct_fields__, row, strict=True)), Finding)
