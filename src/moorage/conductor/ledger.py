"""The ledger: durable operations, which conductors lease, advance and finish.

An operation is one piece of work on one server. Whoever leases it may advance it until the lease ends; every
write is fenced by the lease, so a conductor that was thought dead can't undo what its successor did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.compute import operations, servers

FIRST_STEP = "begin"


@dataclass(slots=True)
class Operation:
    """An operation under lease."""

    id: int
    server_id: int
    server_uuid: str
    kind: str
    step: str
    attempt: int
    tries: int
    data: dict[str, Any] = field(default_factory=dict)
    action_id: int | None = None


def enqueue(
    connection: Connection, server_id: int, kind: str, data: dict[str, Any], action_id: int | None = None
) -> int:
    """Write an operation down, in the transaction that makes it necessary; its id."""
    statement = sa.insert(operations).values(
        server_id=server_id, kind=kind, step=FIRST_STEP, data=data, action_id=action_id, due_at=utcnow()
    )
    return int(connection.execute(statement.returning(operations.c.id)).scalar_one())


def cancel(connection: Connection, server_id: int) -> None:
    """End all unfinished operations of a server; a conductor that is at one of them is fenced from now on."""
    connection.execute(
        sa.update(operations)
        .where(operations.c.server_id == server_id, operations.c.finished_at.is_(None))
        .values(finished_at=utcnow(), outcome="cancelled", lease=None, due_at=None)
    )


def lease(connection: Connection, owner: str, count: int, seconds: float) -> list[Operation]:
    """Take up to `count` operations that are due and that nobody else is at."""
    now = utcnow()
    free = sa.or_(operations.c.leased_until.is_(None), operations.c.leased_until < now)
    query = (
        sa.select(operations.c.id)
        .where(operations.c.finished_at.is_(None), operations.c.due_at <= now, free)
        .order_by(operations.c.due_at)
        .limit(count)
        .with_for_update(skip_locked=True)
    )
    ids = list(connection.execute(query).scalars())
    if not ids:
        return []
    connection.execute(
        sa.update(operations)
        .where(among(connection, operations.c.id, ids))
        .values(lease=owner, leased_until=now + timedelta(seconds=seconds))
    )
    return load(connection, ids)


def load(connection: Connection, ids: Sequence[int]) -> list[Operation]:
    table = operations
    query = (
        sa.select(
            table.c.id,
            table.c.server_id,
            servers.c.uuid,
            table.c.kind,
            table.c.step,
            table.c.attempt,
            table.c.tries,
            table.c.data,
            table.c.action_id,
        )
        .join_from(table, servers, table.c.server_id == servers.c.id)
        .where(among(connection, table.c.id, ids))
        .order_by(table.c.id)
    )
    return [Operation(*row) for row in connection.execute(query)]


def still_mine(connection: Connection, owner: str, ids: Sequence[int]) -> set[int]:
    """Which of these this conductor still holds; they stay locked until the transaction ends."""
    query = (
        sa.select(operations.c.id)
        .where(
            among(connection, operations.c.id, ids),
            operations.c.lease == owner,
            operations.c.finished_at.is_(None),
        )
        .order_by(operations.c.id)
        .with_for_update()
    )
    return set(connection.execute(query).scalars())


def checkpoint(connection: Connection, operation: Operation, due_at: datetime) -> None:
    """Keep how far the operation is, and let go of it until `due_at`."""
    connection.execute(
        sa.update(operations)
        .where(operations.c.id == operation.id)
        .values(
            step=operation.step,
            attempt=operation.attempt,
            tries=operation.tries,
            data=operation.data,
            due_at=due_at,
            lease=None,
            leased_until=None,
        )
    )


def finish(connection: Connection, operation: Operation, outcome: str, error: str | None = None) -> None:
    connection.execute(
        sa.update(operations)
        .where(operations.c.id == operation.id)
        .values(
            step=operation.step,
            attempt=operation.attempt,
            data=operation.data,
            finished_at=utcnow(),
            outcome=outcome,
            error=error,
            due_at=None,
            lease=None,
            leased_until=None,
        )
    )


def answer(connection: Connection, operation_id: int, attempt: int, key: str, result: dict[str, Any]) -> bool:
    """Put an agent's result into the operation that waits for it; False if it is stale."""
    query = (
        sa.select(operations.c.data)
        .where(
            operations.c.id == operation_id,
            operations.c.attempt == attempt,
            operations.c.finished_at.is_(None),
        )
        .with_for_update()
    )
    data = connection.execute(query).scalar_one_or_none()
    if data is None:
        return False
    connection.execute(
        sa.update(operations)
        .where(operations.c.id == operation_id)
        .values(data={**data, key: result}, due_at=utcnow())
    )
    return True
