"""What agents answer, put where it is waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import one_of
from moorage.db.tables.compute import operations


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An agent's result, for the operation that waits for it."""

    operation_id: int
    attempt: int
    result: dict[str, Any]


def answer(connection: Connection, answers: Sequence[AgentAnswer]) -> set[int]:
    """Put results into the operations that wait for them; the ids of those that were not stale."""
    ids = {given.operation_id for given in answers}
    waiting = {(row.id, row.attempt) for row in connection.execute(_WAITING, {"ids": ids})}
    rows: list[dict[str, Any]] = [
        {"of": given.operation_id, "result": given.result, "due_at": utcnow()}
        for given in answers
        if (given.operation_id, given.attempt) in waiting
    ]
    if rows:
        connection.execute(_ANSWER, rows)
    return {row["of"] for row in rows}


_WAITING = (
    sa.select(operations.c.id, operations.c.attempt)
    .where(one_of(operations.c.id, "ids"), operations.c.finished_at.is_(None))
    .order_by(operations.c.id)
    .with_for_update()
)
_ANSWER = (
    sa.update(operations)
    .where(operations.c.id == sa.bindparam("of"))
    .values(result=sa.bindparam("result"), due_at=sa.bindparam("due_at"))
)
