"""What operators may do about an operation: have it tried now, or cancelled.

Both are changes of its row that conductors heed at their next look. Whoever is at it meanwhile is not
disturbed: its checkpoint leaves a cancel alone, and sees it. So a cancel is never lost, and goes the way back
that the operation's kind declares, at a step that allows it.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ConflictError
from moorage.compute.operations import recorded
from moorage.compute.operations.recorded import RecordedOperation
from moorage.compute.operations.standing import Onlooker, State, state_of
from moorage.core.clock import utcnow
from moorage.db import lock
from moorage.db.tables.compute import operations, servers

CANCELLED = "An administrator cancelled it."


def retry(connection: Connection, operation_id: int) -> RecordedOperation:
    """Have it looked at now, with all its tries before it; an agent that has not answered is asked again."""
    operation = _locked(connection, operation_id)
    match state_of(operation, utcnow()):
        case State.PLANNED:
            raise ConflictError(
                f"Operation {operation.id} is not being tried: it begins at {operation.due_at}, not before."
            )
        case State.WORKING:
            raise ConflictError(f"Conductor {operation.lease} is at operation {operation.id} just now.")
    _set(connection, operation_id, due_at=utcnow(), tries=0)
    return operation


def cancel(connection: Connection, onlooker: Onlooker, operation_id: int, reason: str) -> RecordedOperation:
    operation = _locked(connection, operation_id)
    step = onlooker.step(operation)
    if step is None:
        raise ConflictError(f"This release does not know what a {operation.kind} at {operation.step} is.")
    if step.cancel.refusal is not None:
        raise ConflictError(
            f"Operation {operation.id} ({operation.kind}) can't be cancelled at {operation.step}: "
            f"{step.cancel.refusal}."
        )
    now = utcnow()
    at_once = state_of(operation, now) is State.WAITING and step.cancel.now
    _set(connection, operation_id, cancel_reason=reason, **({"due_at": now} if at_once else {}))
    return operation


def _locked(connection: Connection, operation_id: int) -> RecordedOperation:
    """Its server first, as by users' requests and checkpoints: then no two wait for each other."""
    operation = recorded.find(connection, operation_id)
    if lock.is_by_row(connection):
        server = sa.select(servers.c.id).where(servers.c.id == operation.server_id)
        connection.execute(server.with_for_update(key_share=True))
        row = sa.select(operations.c.id).where(operations.c.id == operation_id)
        connection.execute(row.with_for_update())
    operation = recorded.find(connection, operation_id)
    if operation.finished_at is not None:
        raise ConflictError(f"Operation {operation_id} has ended: {operation.outcome}.")
    return operation


def _set(connection: Connection, operation_id: int, **columns: object) -> None:
    connection.execute(sa.update(operations).where(operations.c.id == operation_id).values(**columns))
