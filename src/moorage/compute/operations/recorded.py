"""Operations as the ledger has them, each with what people know it by: its server, its request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import NotFoundError
from moorage.db.among import among
from moorage.db.tables.compute import actions, operations, servers


class RecordedOperation(msgspec.Struct, frozen=True):
    id: int
    kind: str
    step: str
    attempt: int
    tries: int
    data: dict[str, Any]
    answered: bool
    """An agent's answer has come in that no conductor has read."""
    due_at: datetime | None
    lease: str | None
    leased_until: datetime | None
    created_at: datetime
    step_since: datetime | None
    """None: no conductor has come to a checkpoint yet, or one of an older release did."""
    trouble: str | None
    cancel_reason: str | None
    finished_at: datetime | None
    outcome: str | None
    error: str | None
    server_id: int
    server_uuid: str
    server_name: str
    project_id: str
    host: str | None
    """That of the server, now."""
    request_id: str | None


class Selection(msgspec.Struct, frozen=True):
    """Which operations are meant; those that are not ended, unless one names a server and wants all."""

    kind: str | None = None
    step: str | None = None
    server_uuid: str | None = None
    ended: bool = False


_QUERY = sa.select(
    operations.c.id,
    operations.c.kind,
    operations.c.step,
    operations.c.attempt,
    operations.c.tries,
    operations.c.data,
    operations.c.result.is_not(None).label("answered"),
    operations.c.due_at,
    operations.c.lease,
    operations.c.leased_until,
    operations.c.created_at,
    operations.c.step_since,
    operations.c.trouble,
    operations.c.cancel_reason,
    operations.c.finished_at,
    operations.c.outcome,
    operations.c.error,
    operations.c.server_id,
    servers.c.uuid,
    servers.c.name,
    servers.c.project_id,
    servers.c.host,
    actions.c.request_id,
).select_from(
    operations.join(servers, servers.c.id == operations.c.server_id).outerjoin(
        actions, actions.c.id == operations.c.action_id
    )
)


def listed(connection: Connection, selection: Selection, most: int | None = None) -> list[RecordedOperation]:
    """The oldest first."""
    query = _QUERY.order_by(operations.c.id).limit(most)
    if not selection.ended:
        query = query.where(operations.c.finished_at.is_(None))
    if selection.kind is not None:
        query = query.where(operations.c.kind == selection.kind)
    if selection.step is not None:
        query = query.where(operations.c.step == selection.step)
    if selection.server_uuid is not None:
        query = query.where(servers.c.uuid == selection.server_uuid)
    return [RecordedOperation(*row) for row in connection.execute(query)]


def find(connection: Connection, operation_id: int) -> RecordedOperation:
    (*found,) = by_id(connection, [operation_id])
    if not found:
        raise NotFoundError(f"Operation {operation_id} could not be found.")
    return found[0]


def by_id(connection: Connection, ids: Sequence[int]) -> list[RecordedOperation]:
    query = _QUERY.where(among(connection, operations.c.id, ids)).order_by(operations.c.id)
    return [RecordedOperation(*row) for row in connection.execute(query)]
