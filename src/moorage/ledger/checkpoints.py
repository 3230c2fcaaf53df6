"""How far operations have come, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.tables.compute import operations
from moorage.db.tables.metadata import Timestamp
from moorage.ledger.operation import Operation

_NO_NEWS = sa.or_(
    operations.c.result.is_(None),
    sa.bindparam("used", type_=sa.Boolean),
    operations.c.attempt != sa.bindparam("attempt"),
)
"""No result has come in, or it was used, or it is about an attempt that this very write ends."""

_NOW = sa.bindparam("now", type_=Timestamp)
_SAVE = (
    sa.update(operations)
    .where(operations.c.id == sa.bindparam("of"))
    .values(
        {name: sa.bindparam(name) for name in ("step", "attempt", "tries", "data", "leased_until", "lease")}
        | {
            "result": sa.case((_NO_NEWS, sa.null()), else_=operations.c.result),
            "due_at": sa.case((_NO_NEWS, sa.bindparam("due")), else_=sa.bindparam("now")),
            "step_since": sa.case(
                (operations.c.step == sa.bindparam("step"), sa.func.coalesce(operations.c.step_since, _NOW)),
                else_=_NOW,
            ),
            "trouble": sa.case(
                (sa.bindparam("trouble", type_=sa.Text).is_not(None), sa.bindparam("trouble", type_=sa.Text)),
                (sa.bindparam("tries") > 0, operations.c.trouble),
                else_=sa.null(),
            ),
        }
    )
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far an operation is; without a lease it is free until `due_at`."""

    operation: Operation
    due_at: datetime
    used_result: bool = False
    trouble: str | None = None
    """Why it waits or is tried again; what was the trouble before stays so while it is tried."""
    lease: str | None = None
    leased_until: datetime | None = None


def save(connection: Connection, checkpoints: Sequence[Checkpoint]) -> None:
    """Keep what was reached; an operation whose result came in meanwhile is due at once."""
    now = utcnow()
    rows = [
        {
            "of": point.operation.id,
            "step": point.operation.step,
            "attempt": point.operation.attempt,
            "tries": point.operation.tries,
            "data": point.operation.data,
            "due": point.due_at,
            "now": now,
            "used": point.used_result,
            "trouble": point.trouble,
            "lease": point.lease,
            "leased_until": point.leased_until,
        }
        for point in checkpoints
    ]
    if rows:
        connection.execute(_SAVE, rows)


@dataclass(frozen=True, slots=True)
class Completion:
    operation: Operation
    outcome: str
    error: str | None = None


_FINISH = (
    sa.update(operations)
    .where(operations.c.id == sa.bindparam("of"))
    .values(
        data=sa.bindparam("data"),
        secrets=None,
        outcome=sa.bindparam("outcome"),
        error=sa.bindparam("error"),
        finished_at=sa.bindparam("finished_at"),
        due_at=None,
        lease=None,
        leased_until=None,
    )
)


def finish(connection: Connection, endings: Sequence[Completion]) -> None:
    now = utcnow()
    rows = [
        {
            "of": ending.operation.id,
            "data": ending.operation.data,
            "outcome": ending.outcome,
            "error": ending.error,
            "finished_at": now,
        }
        for ending in endings
    ]
    if rows:
        connection.execute(_FINISH, rows)
