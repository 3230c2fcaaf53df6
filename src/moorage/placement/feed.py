"""The change feed: which providers changed since a process last looked.

Every write appends a row in its own transaction, so the feed says exactly what was committed. Reading it in
the order of the row ids would lose changes on PostgreSQL, where a number that was drawn early may be
committed late. There a reader keeps the snapshot of its last look: which transactions were still running, and
which had not begun. Whatever became visible since was written by one of these, and all that they wrote is
new. SQLite has one writer at a time, so there the ids are in commit order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.core.clock import utcnow
from moorage.db import bulk
from moorage.db.probe import Probe
from moorage.db.tables.placement import changes


class Kind(IntEnum):
    PROVIDER = 1
    """Made, changed in any way, or deleted."""
    USAGE = 2
    """Only its usage and its generation changed."""
    NAMES = 3
    """A resource class or a trait came, went or was renamed."""


def append(connection: Connection, kind: Kind, provider_ids: Iterable[int | None] = (None,)) -> None:
    now = utcnow()
    rows = [(provider_id, kind.value, now) for provider_id in provider_ids]
    bulk.insert(connection, changes, ("provider_id", "kind", "at"), rows)


def prune(connection: Connection, keep_seconds: int) -> int:
    """Forget what every reader has seen long ago."""
    result = connection.execute(
        sa.delete(changes).where(changes.c.at < utcnow() - timedelta(seconds=keep_seconds))
    )
    return result.rowcount


@dataclass(slots=True)
class Changes:
    """What came since the last look."""

    providers: set[int] = field(default_factory=set)
    usages: set[int] = field(default_factory=set)
    names: bool = False

    def __or__(self, later: Changes) -> Changes:
        return Changes(
            self.providers | later.providers, self.usages | later.usages, self.names or later.names
        )

    def __bool__(self) -> bool:
        return bool(self.providers or self.usages or self.names)

    def add(self, kind: int, provider_id: int | None) -> None:
        if kind == Kind.NAMES or provider_id is None:
            self.names = True
        elif kind == Kind.PROVIDER:
            self.providers.add(provider_id)
        else:
            self.usages.add(provider_id)


class PostgresqlReader:
    """Reads by transaction snapshot."""

    _NOW = sa.text("SELECT pg_current_snapshot()::text")
    _SINCE = sa.text(
        "SELECT pg_current_snapshot()::text, c.provider_id, c.kind "
        "FROM (SELECT 1) AS one LEFT JOIN changes AS c ON c.xid >= CAST(CAST(:next AS text) AS xid8) "
        "OR c.xid = ANY (CAST(CAST(:running AS text) AS xid8[]))"
    )

    def __init__(self) -> None:
        self._next = 0
        """The first transaction that had not begun at the last look."""
        self._running = ""
        """Those before it that had not ended, with commas between them."""

    def start(self, connection: Connection) -> None:
        """Everything that `connection`'s snapshot sees counts as read."""
        self._keep(connection.execute(self._NOW).scalar_one())

    def news(self, probe: Probe) -> bool:
        """Whether a `read` would find anything, at a fraction of its price."""
        return probe.finds(str(self._next), f"{{{self._running}}}")

    def read(self, connection: Connection) -> Changes:
        found = Changes()
        looked_at = {"next": self._next, "running": f"{{{self._running}}}"}
        rows = connection.execute(self._SINCE, looked_at).all()
        for _, provider_id, kind in rows:
            if kind is not None:
                found.add(kind, provider_id)
        self._keep(rows[0][0])
        return found

    def _keep(self, snapshot: str) -> None:
        """In PostgreSQL's words: `xmin:xmax:running,running,…`."""
        _, upper, self._running = snapshot.split(":")
        self._next = int(upper)


class SqliteReader:
    """Reads by row id."""

    _SINCE = sa.select(changes.c.id, changes.c.provider_id, changes.c.kind).where(
        changes.c.id > sa.bindparam("low")
    )

    def __init__(self) -> None:
        self._low = 0

    def start(self, connection: Connection) -> None:
        self._low = connection.execute(sa.select(sa.func.coalesce(sa.func.max(changes.c.id), 0))).scalar_one()

    def news(self, probe: Probe) -> bool:
        return probe.finds(str(self._low))

    def read(self, connection: Connection) -> Changes:
        found = Changes()
        for row_id, provider_id, kind in connection.execute(self._SINCE, {"low": self._low}):
            self._low = max(self._low, row_id)
            found.add(kind, provider_id)
        return found


Reader = PostgresqlReader | SqliteReader


def probe(engine: Engine) -> Probe:
    """What `Reader.news` asks."""
    return Probe(
        engine,
        postgresql="(SELECT FROM changes WHERE xid >= $1::text::xid8 ORDER BY xid DESC LIMIT 1) "
        "UNION ALL (SELECT FROM changes WHERE xid = ANY ($2::text::xid8[]) LIMIT 1)",
        sqlite="SELECT 1 FROM changes WHERE id > CAST(? AS INTEGER) LIMIT 1",
    )
