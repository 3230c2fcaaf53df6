"""The change feed: which providers changed since a process last looked.

Every write appends a row in its own transaction, so the feed says exactly what was committed. Reading it in
the order of the row ids would lose changes on PostgreSQL, where a number that was drawn early may be
committed late. There a reader keeps the snapshot of its last look: which transactions were still running, and
which had not begun. Whatever became visible since was written by one of these, and all that they wrote is
new. SQLite has one writer at a time, so there the ids are in commit order.

Old rows are pruned. Who does that leaves word in the feed how far it went, so that a reader that had not come
so far (it slept, or a clock jumped, or a transaction took very long) knows that it has lost something.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.core.clock import utcnow
from moorage.db import bulk
from moorage.db.probe import Probe
from moorage.db.tables.placement import changes
from moorage.placement.fleet.record import UsageRecord


class ChangeKind(IntEnum):
    PROVIDER = 1
    """Made, changed in any way, or deleted."""
    USAGE = 2
    """Only its usage and its generation changed."""
    NAMES = 3
    """A resource class or a trait came, went or was renamed."""
    PRUNED = 4
    """Rows were pruned; in place of a provider it has the newest position that was among them."""


def append(connection: Connection, kind: ChangeKind, provider_ids: Iterable[int | None] = (None,)) -> None:
    now = utcnow()
    rows = [(provider_id, kind.value, now) for provider_id in provider_ids]
    bulk.insert(connection, changes, ("provider_id", "kind", "at"), rows)


def append_everything(connection: Connection) -> None:
    """So much has changed that every reader shall load the fleet anew: as if its part of the feed, up to this
    very row, had been pruned."""
    if connection.dialect.name == "postgresql":
        position = connection.execute(sa.text("SELECT pg_current_xact_id()::text::bigint")).scalar_one()
    else:
        newest = sa.select(sa.func.coalesce(sa.func.max(changes.c.id), 0))
        position = connection.execute(newest).scalar_one() + 1
    append(connection, ChangeKind.PRUNED, [position])


_PRUNE = sa.text(
    "WITH gone AS (DELETE FROM changes WHERE at < :past RETURNING xid) "
    "SELECT max(xid::text::bigint) FROM gone"
)


def prune(connection: Connection, keep_seconds: int) -> None:
    """Forget what every reader should have seen long ago."""
    past = utcnow() - timedelta(seconds=keep_seconds)
    if connection.dialect.name == "postgresql":
        newest = connection.execute(_PRUNE, {"past": past}).scalar_one()
    else:
        newest = connection.execute(
            sa.select(sa.func.max(changes.c.id)).where(changes.c.at < past)
        ).scalar_one()
        connection.execute(sa.delete(changes).where(changes.c.at < past))
    if newest is not None:
        append(connection, ChangeKind.PRUNED, [newest])


def clear(connection: Connection) -> None:
    """After a restore: whoever reads it begins anew, and its places are those of another database."""
    connection.execute(sa.delete(changes))


@dataclass(slots=True)
class Changes:
    """What came since the last look."""

    providers: set[int] = field(default_factory=set)
    usages: set[int] = field(default_factory=set)
    names: bool = False
    lost: bool = False
    """There was more, but it has been pruned: only a fresh load tells."""

    def __or__(self, later: Changes) -> Changes:
        return Changes(
            self.providers | later.providers,
            self.usages | later.usages,
            self.names or later.names,
            self.lost or later.lost,
        )

    def __bool__(self) -> bool:
        return bool(self.providers or self.usages or self.names or self.lost)

    def add(self, kind: int, provider_id: int | None) -> None:
        if kind == ChangeKind.NAMES or provider_id is None:
            self.names = True
        elif kind == ChangeKind.PROVIDER:
            self.providers.add(provider_id)
        else:
            self.usages.add(provider_id)


class QuickRead(NamedTuple):
    """What a quick look found: mostly nothing, or what claims have changed."""

    usages: list[UsageRecord]
    more: bool = False
    """There is something else, which only a `read` tells; then nothing is told, or used up, here."""


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

    def quick_read(self, probe: Probe) -> QuickRead:
        """What a `read` would find, with the usages themselves, at a fraction of the price."""
        rows = probe.rows(str(self._next), f"{{{self._running}}}")
        found = _seen(rows)
        if found.usages:
            self._keep(rows[0][0])
        return found

    def read(self, connection: Connection) -> Changes:
        found = Changes()
        looked_at = {"next": self._next, "running": f"{{{self._running}}}"}
        rows = connection.execute(self._SINCE, looked_at).all()
        unread = self._unread(rows[0][0])
        for _, provider_id, kind in rows:
            if kind == ChangeKind.PRUNED:
                found.lost |= provider_id in unread
            elif kind is not None:
                found.add(kind, provider_id)
        self._keep(rows[0][0])
        return found

    def _unread(self, snapshot: str) -> range:
        """From the oldest transaction that may have become visible since; one that still runs has not."""
        ended = _running(self._running) - _running(snapshot.split(":")[2])
        return range(min({self._next, *ended}), _upper(snapshot))

    def _keep(self, snapshot: str) -> None:
        """In PostgreSQL's words: `xmin:xmax:running,running,…`."""
        self._running = snapshot.split(":")[2]
        self._next = _upper(snapshot)


def _running(listed: str) -> set[int]:
    return {int(xid) for xid in listed.split(",") if xid}


def _upper(snapshot: str) -> int:
    """The first transaction that had not begun; a dump from another server may have rows of later ones."""
    return int(snapshot.split(":")[1])


class SqliteReader:
    """Reads by row id."""

    _SINCE = sa.select(changes.c.id, changes.c.provider_id, changes.c.kind).where(
        changes.c.id > sa.bindparam("low")
    )

    def __init__(self) -> None:
        self._low = 0

    def start(self, connection: Connection) -> None:
        self._low = connection.execute(sa.select(sa.func.coalesce(sa.func.max(changes.c.id), 0))).scalar_one()

    def quick_read(self, probe: Probe) -> QuickRead:
        rows = probe.rows(str(self._low))
        found = _seen(rows)
        if found.usages:
            self._low = int(rows[0][0])
        return found

    def read(self, connection: Connection) -> Changes:
        found = Changes()
        low = self._low
        for row_id, provider_id, kind in connection.execute(self._SINCE, {"low": low}):
            self._low = max(self._low, row_id)
            if kind == ChangeKind.PRUNED:
                found.lost |= provider_id > low
            else:
                found.add(kind, provider_id)
        return found


Reader = PostgresqlReader | SqliteReader

_MOST_AT_A_GLANCE = 256
_GLANCE = f"""
SELECT {{position}}, (SELECT count(*) FROM recent),
       one.kind, p.id, p.generation, p.updated_at, i.class_id, i.used
FROM (SELECT DISTINCT kind, provider_id FROM recent) AS one
LEFT JOIN providers AS p ON one.kind = {ChangeKind.USAGE.value} AND p.id = one.provider_id
LEFT JOIN inventories AS i ON i.provider_id = p.id
"""


def probe(engine: Engine) -> Probe:
    """What `quick_read` asks: the changes and what became of usages in one statement, so of one moment."""
    recent, most = "SELECT provider_id, kind FROM changes WHERE", _MOST_AT_A_GLANCE + 1
    return Probe(
        engine,
        postgresql=f"WITH recent AS MATERIALIZED (({recent} xid >= $1::text::xid8 LIMIT {most}) "
        f"UNION ALL ({recent} xid = ANY ($2::text::xid8[]) LIMIT {most}))"
        + _GLANCE.format(position="pg_current_snapshot()"),
        sqlite=f"WITH recent AS (SELECT id, provider_id, kind FROM changes "
        f"WHERE id > CAST(? AS INTEGER) LIMIT {most})"
        + _GLANCE.format(position="(SELECT max(id) FROM recent)"),
    )


def _seen(rows: list[tuple[str, ...]]) -> QuickRead:
    found: dict[str, UsageRecord] = {}
    for _, count, kind, provider_id, generation, updated_at, class_id, used in rows:
        if int(kind) != ChangeKind.USAGE or not provider_id or int(count) > _MOST_AT_A_GLANCE:
            return QuickRead([], more=True)
        usage = found.get(provider_id)
        if usage is None:
            usage = found[provider_id] = UsageRecord(
                int(provider_id), int(generation), _timestamp(updated_at), {}
            )
        if class_id:
            usage.used[int(class_id)] = int(used)
    return QuickRead(list(found.values()))


def _timestamp(text: str) -> float:
    """PostgreSQL names its time zone, SQLite has UTC."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
