"""Traces: the decisions about a server as they were recorded, each with what became of it on its host.

A trace is written when it is decided. How the host then did is with the operation that the decision was made
for, so that a build that goes well has nothing more to write.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from moorage.db.tables.compute import operations, traces
from moorage.scheduler.trace import Trace

ATTEMPTS = "attempts"
"""In an operation's data: its attempts that came to nothing, each an `AttemptRecord`."""

_LAST_STEP = {"build": "spawn"}
"""What a kind of operation does on the host last; others are called what they are."""


@dataclass(frozen=True)
class RecordedDecision:
    operation_id: int | None
    operation: str | None
    """Its kind; None for a decision that no operation was made for, or one that is forgotten."""
    attempt: int
    """Counted from 1 within its operation; what agents are fenced by goes on from one to the next."""
    created_at: datetime
    trace: dict[str, Any]


class AttemptRecord(msgspec.Struct, frozen=True):
    """What an operation keeps of an attempt that it had to give up."""

    attempt: int
    step: str
    outcome: str
    detail: str


def keep(connection: Connection, server_id: int, trace: Trace) -> None:
    """Write down a decision that no operation was made for."""
    values = {"server_id": server_id, "attempt": 1, "trace": msgspec.to_builtins(trace)}
    connection.execute(sa.insert(traces).values(values))


def of_server(connection: Connection, server_id: int) -> list[RecordedDecision]:
    """The newest last."""
    query = (
        sa.select(
            traces.c.operation_id,
            traces.c.attempt,
            traces.c.created_at,
            traces.c.trace,
            operations.c.kind,
            operations.c.data,
            operations.c.outcome,
            operations.c.error,
        )
        .join_from(traces, operations, operations.c.id == traces.c.operation_id, isouter=True)
        .where(traces.c.server_id == server_id)
        .order_by(traces.c.id)
    )
    found: list[RecordedDecision] = []
    made: Counter[int | None] = Counter()
    for row in connection.execute(query):
        made[row.operation_id] += 1
        number = 1 if row.operation_id is None else made[row.operation_id]
        trace = _continued(row._mapping)
        found.append(RecordedDecision(row.operation_id, row.kind, number, row.created_at, trace))
    return found


def _continued(row: RowMapping) -> dict[str, Any]:
    """The trace, and how it went on at the chosen place."""
    trace: dict[str, Any] = row["trace"]
    if row["kind"] is None or not trace.get("chosen"):
        return trace
    step = _LAST_STEP.get(row["kind"], row["kind"])
    found = next((one for one in row["data"].get(ATTEMPTS, ()) if one["attempt"] == row["attempt"]), None)
    if found is not None:
        end = {name: found[name] for name in ("step", "outcome", "detail")}
    elif row["outcome"] == "failed":
        end = {"step": step, "outcome": "failed", "detail": row["error"] or ""}
    else:
        end = {"step": step, "outcome": row["outcome"] or "under way", "detail": ""}
    return {**trace, "attempts": [*trace.get("attempts", ()), {"place": trace["chosen"], **end}]}
