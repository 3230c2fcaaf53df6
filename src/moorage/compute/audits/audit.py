"""An audit that was asked for: conductors make it, and say how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.tables.audits import audits


class CheckName(StrEnum):
    """What is compared; in the order in which it is."""

    ALLOCATIONS = "allocations"
    COUNTERS = "counters"
    QUOTAS = "quotas"
    ADDRESSES = "addresses"
    PORTS = "ports"
    LOST_PORTS = "lost-ports"
    NODES = "nodes"
    PROVIDERS = "providers"
    ORPHANED_PROVIDERS = "orphaned-providers"
    HOST_SERVERS = "host-servers"
    MACHINES = "machines"
    IMAGE_CACHES = "image-caches"
    AGGREGATES = "aggregates"
    MOVES = "moves"
    LEDGER = "ledger"
    ERA = "era"
    QUEUES = "queues"


class Repair(StrEnum):
    """What an audit may do about what it finds."""

    NOTHING = "nothing"
    SAFE = "safe"
    """Only what can't be wrong."""
    ALL = "all"


class Stage(StrEnum):
    WAITING = "waiting"
    """No conductor has begun yet."""
    LOOKING = "looking"
    CONFIRMING = "confirming"
    """What was found for the first time is looked at once more after the grace period."""
    REPAIRING = "repairing"
    DONE = "done"


class Audit(msgspec.Struct, frozen=True):
    uuid: str
    checks: list[str]
    """Empty for all."""
    repair: Repair
    stage: Stage
    at_check: str
    done: int
    total: int
    failures: dict[str, str]
    """By check that could not be made: why."""
    created_at: datetime
    finished_at: datetime | None


_COLUMNS = tuple(audits.c[name] for name in Audit.__struct_fields__)


def ask(connection: Connection, checks: Sequence[str], repair: Repair, asked_by: str = "") -> str:
    """Have one made; its UUID."""
    uuid = uuids.generate()
    values = {"uuid": uuid, "checks": list(checks), "repair": repair.value, "asked_by": asked_by}
    connection.execute(sa.insert(audits).values(**values, stage=Stage.WAITING.value))
    return uuid


def find(connection: Connection, uuid: str) -> Audit | None:
    row = connection.execute(sa.select(*_COLUMNS).where(audits.c.uuid == uuid)).one_or_none()
    return None if row is None else _of(row)


def is_one_due(connection: Connection) -> bool:
    """Whether one is to be made, or is being made, that nobody asked for."""
    query = sa.select(audits.c.id).where(audits.c.finished_at.is_(None), audits.c.asked_by == "")
    return connection.execute(query.limit(1)).first() is not None


def next_one(connection: Connection) -> Audit | None:
    """Of those that are not made yet, the one that somebody has waited for longest."""
    asked_first = sa.case((audits.c.asked_by == "", 1), else_=0)
    unfinished = sa.select(*_COLUMNS).where(audits.c.finished_at.is_(None))
    query = unfinished.order_by(asked_first, audits.c.id).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _of(row)


def tell(
    connection: Connection, uuid: str, stage: Stage, at_check: str = "", done: int = 0, total: int = 0
) -> None:
    """How far it is."""
    values = {"stage": stage.value, "at_check": at_check, "done": done, "total": total}
    connection.execute(sa.update(audits).where(audits.c.uuid == uuid).values(values))


def fail(connection: Connection, uuid: str, failures: dict[str, str]) -> None:
    """These checks could not be made."""
    connection.execute(sa.update(audits).where(audits.c.uuid == uuid).values(failures=failures))


def finish(connection: Connection, uuid: str) -> None:
    values = {"stage": Stage.DONE.value, "finished_at": utcnow(), "at_check": ""}
    connection.execute(sa.update(audits).where(audits.c.uuid == uuid).values(values))


def abandon(connection: Connection) -> None:
    """After a restore: nobody waits for those that were asked for before it."""
    values = {"stage": Stage.DONE.value, "finished_at": utcnow(), "at_check": ""}
    connection.execute(sa.update(audits).where(audits.c.finished_at.is_(None)).values(values))


def _of(row: sa.Row[tuple[object, ...]]) -> Audit:
    return msgspec.convert(dict(zip(Audit.__struct_fields__, row, strict=True)), Audit)
