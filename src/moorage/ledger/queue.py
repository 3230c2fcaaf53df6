"""What has to be done: operations written down, ended, or looked at sooner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core import context
from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.compute import operations, servers
from moorage.ledger.operation import FIRST_STEP


def enqueue(
    connection: Connection,
    server_id: int,
    kind: str,
    data: dict[str, Any],
    action_id: int | None = None,
    *,
    due_at: datetime | None = None,
    secrets: Mapping[str, str] | None = None,
) -> int:
    """Write an operation down, in the transaction that makes it necessary; its id.

    Attempts are numbered per server, across operations: an agent ignores whatever has a lower number than
    it has seen, so what an earlier operation still has under way can't undo this one. `secrets` are kept
    until it ends, however it does. It goes by the ids of the request that it is written down in.
    """
    row = {
        "server_id": server_id,
        "kind": kind,
        "step": FIRST_STEP,
        "attempt": connection.execute(_LAST_ATTEMPT, {"server": server_id}).scalar_one() + 1,
        "data": data,
        "secrets": dict(secrets) if secrets else None,
        "action_id": action_id,
        "request_ids": context.current().request_ids,
        "due_at": due_at or utcnow(),
    }
    return int(connection.execute(_ENQUEUE, row).scalar_one())


_LAST_ATTEMPT = sa.select(sa.func.coalesce(sa.func.max(operations.c.attempt), 0)).where(
    operations.c.server_id == sa.bindparam("server")
)
_ENQUEUE = sa.insert(operations).returning(operations.c.id)


def enqueue_first(
    connection: Connection, kind: str, action_ids: Mapping[int, int], request_ids: Mapping[int, str]
) -> None:
    """Write down the first operation of each of several new servers, by their actions."""
    now = utcnow()
    rows = [
        {
            "server_id": server_id,
            "kind": kind,
            "step": FIRST_STEP,
            "action_id": action_id,
            "request_ids": request_ids[server_id],
            "due_at": now,
        }
        for server_id, action_id in action_ids.items()
    ]
    connection.execute(sa.insert(operations), rows)


def cancel(connection: Connection, server_id: int, *, sparing: Sequence[str] = ()) -> None:
    """End all unfinished operations of a server, but those of the kinds that nobody else would do.

    A conductor that is at one of them is fenced from now on. Its lease is left to run out, because until
    then it may still have something under way: see `under_way`.
    """
    connection.execute(
        sa.update(operations)
        .where(
            operations.c.server_id == server_id,
            operations.c.finished_at.is_(None),
            operations.c.kind.not_in(sparing),
        )
        .values(finished_at=utcnow(), outcome="cancelled", due_at=None, secrets=None)
    )


def nudge(connection: Connection, server_id: int) -> None:
    """Have a look taken soon at what a server's operation waits for: there is something new to know."""
    connection.execute(
        sa.update(operations)
        .where(operations.c.server_id == server_id, operations.c.finished_at.is_(None))
        .values(due_at=utcnow())
    )


def revise(connection: Connection, server_id: int, kinds: Sequence[str], more: Mapping[str, Any]) -> None:
    """Tell operations of these kinds more that nobody has begun with, and have them begun now."""
    query = sa.select(operations.c.id, operations.c.data).where(
        operations.c.server_id == server_id,
        operations.c.kind.in_(kinds),
        operations.c.step == FIRST_STEP,
        operations.c.finished_at.is_(None),
        operations.c.leased_until.is_(None),
    )
    for operation_id, data in connection.execute(query.with_for_update()).all():
        changed = sa.update(operations).where(operations.c.id == operation_id)
        connection.execute(changed.values(data={**data, **more}, due_at=utcnow()))


def nudge_at(connection: Connection, server_uuids: Sequence[str], step: str) -> None:
    """Likewise for several servers, but only where it is this step that waits."""
    named = sa.select(servers.c.id).where(among(connection, servers.c.uuid, server_uuids))
    connection.execute(
        sa.update(operations)
        .where(
            operations.c.server_id.in_(named), operations.c.finished_at.is_(None), operations.c.step == step
        )
        .values(due_at=utcnow())
    )


def under_way(connection: Connection, server_ids: Sequence[int]) -> set[int]:
    """The servers of which some conductor may still be at a cancelled operation."""
    query = sa.select(operations.c.server_id).where(
        among(connection, operations.c.server_id, server_ids),
        operations.c.outcome == "cancelled",
        operations.c.leased_until > utcnow(),
    )
    return set(connection.execute(query).scalars())
