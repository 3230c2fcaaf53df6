"""Leases of operations: whoever has one may advance it until the lease ends, and every write is fenced by it.

So a conductor whose lease has ended can't undo what its successor did.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db import lock
from moorage.db.among import among, one_of
from moorage.db.database import Database
from moorage.db.probe import Probe, as_text
from moorage.db.tables.compute import operations, servers
from moorage.ledger import queue
from moorage.ledger.operation import FIRST_STEP, Operation

GIVE_BACK = "give_back"
"""The kind of operation that releases what a conductor got after its lease had ended."""
_DELETING = "deleting"

_LOAD = (
    sa.select(
        operations.c.id,
        operations.c.server_id,
        servers.c.uuid,
        operations.c.kind,
        operations.c.step,
        operations.c.attempt,
        operations.c.tries,
        operations.c.created_at,
        operations.c.data,
        operations.c.action_id,
        operations.c.result,
        operations.c.secrets,
        operations.c.cancel_reason,
        operations.c.request_ids,
        operations.c.step_since,
    )
    .join_from(operations, servers, operations.c.server_id == servers.c.id)
    .where(one_of(operations.c.id, "ids"))
    .order_by(operations.c.id)
)
_DUE = (
    sa.select(operations.c.id, operations.c.lease)
    .where(
        operations.c.finished_at.is_(None),
        operations.c.due_at <= sa.bindparam("now"),
        one_of(operations.c.kind, "kinds"),
        operations.c.id >= sa.bindparam("least"),
        sa.or_(operations.c.leased_until.is_(None), operations.c.leased_until < sa.bindparam("now")),
    )
    .order_by(operations.c.due_at)
    .limit(sa.bindparam("count"))
    .with_for_update(skip_locked=True)
)
_LEASE = (
    sa.update(operations)
    .where(one_of(operations.c.id, "ids"))
    .values(lease=sa.bindparam("owner"), leased_until=sa.bindparam("until"))
)


class DueCheck:
    """Whether anything is due that nobody is at: a question that is asked often, and so has to be cheap."""

    _ANY = (
        "SELECT 1 FROM operations WHERE finished_at IS NULL AND due_at <= {now} "
        "AND (leased_until IS NULL OR leased_until < {now}) AND kind IN ({kinds}) AND id >= {least} LIMIT 1"
    )

    def __init__(self, database: Database, kinds: Sequence[str]) -> None:
        listed = ", ".join(f"'{kind}'" for kind in kinds)
        self._probe = Probe(
            database.engine,
            postgresql=self._ANY.format(now="$1::text::timestamptz", kinds=listed, least="$2::text::bigint"),
            sqlite=self._ANY.format(now="?1", kinds=listed, least="CAST(?2 AS INTEGER)"),
        )

    def any(self, least: int = 0) -> bool:
        return bool(self._probe.rows(as_text(utcnow()), str(least)))


def lease(
    connection: Connection, owner: str, kinds: Sequence[str], count: int, seconds: float, least: int = 0
) -> list[Operation]:
    """Take up to `count` operations of these kinds that are due and that nobody else is at.

    A kind that a newer release has brought is left to its conductors; what was written down before the
    operation `least` has to wait.
    """
    now = utcnow()
    due = {"now": now, "kinds": kinds, "count": count, "least": least}
    before = {row.id: row.lease for row in connection.execute(_DUE, due)}
    ids = list(before)
    if not ids:
        return []
    connection.execute(_LEASE, {"ids": ids, "owner": owner, "until": now + timedelta(seconds=seconds)})
    leased = [Operation(*row) for row in connection.execute(_LOAD, {"ids": ids})]
    for operation in leased:
        operation.resumed = before[operation.id] is not None
    return leased


def renew(connection: Connection, owner: str, ids: Sequence[int], until: datetime) -> None:
    """Whoever holds these is still at them; also at those that were cancelled meanwhile."""
    connection.execute(
        sa.update(operations)
        .where(among(connection, operations.c.id, ids), operations.c.lease == owner)
        .values(leased_until=until)
    )


_LOCK_SERVERS = (
    sa.select(servers.c.id)
    .where(servers.c.id.in_(sa.select(operations.c.server_id).where(one_of(operations.c.id, "ids"))))
    .order_by(servers.c.id)
    .with_for_update(key_share=True)
)
_MINE = (
    sa.select(operations.c.id, operations.c.cancel_reason)
    .where(
        one_of(operations.c.id, "ids"),
        operations.c.lease == sa.bindparam("owner"),
        operations.c.finished_at.is_(None),
    )
    .order_by(operations.c.id)
    .with_for_update()
)


def still_mine(connection: Connection, owner: str, ids: Sequence[int]) -> dict[int, str | None]:
    """Which of these this conductor still holds, and why one is to be cancelled, if it is.

    They stay locked until the transaction ends.

    Their servers are locked first, as by users' requests: then no two wait for each other.
    """
    if lock.is_by_row(connection):
        connection.execute(_LOCK_SERVERS, {"ids": ids})
    return {row.id: row.cancel_reason for row in connection.execute(_MINE, {"ids": ids, "owner": owner})}


def forget_leases(connection: Connection) -> None:
    """For a process that has the ledger to itself and has just started: whoever held a lease is dead.

    The name stays, so that whoever goes on knows that it was begun. What was asked of agents in the
    same process may have died with it, so whatever is under way is looked at at once.
    """
    connection.execute(
        sa.update(operations).where(operations.c.leased_until.is_not(None)).values(leased_until=None)
    )
    under_way = operations.c.finished_at.is_(None) & (operations.c.step != FIRST_STEP)
    connection.execute(sa.update(operations).where(under_way).values(due_at=utcnow()))


_VOID = "an earlier era"


def void_leases(connection: Connection) -> int:
    """After a restore: who held a lease when the backup was made has done something else since, and must not
    go on with it. How many operations are unfinished; they are looked at as soon as they may be."""
    held = sa.update(operations).where(operations.c.lease.is_not(None))
    connection.execute(held.values(lease=_VOID, leased_until=None))
    under_way = operations.c.finished_at.is_(None) & (operations.c.step != FIRST_STEP)
    connection.execute(sa.update(operations).where(under_way).values(due_at=utcnow()))
    unfinished = sa.select(sa.func.count()).where(operations.c.finished_at.is_(None))
    return int(connection.execute(unfinished).scalar_one())


def give_back_lost(connection: Connection, owner: str, ids: Sequence[int]) -> None:
    """Our leases of these have ended, or the operations have, and nothing of them is under way here any more.

    If a server is nowhere or gone, what was done for it since then has to be given back. A delete that
    waits for our lease does that itself; all else that goes on with a server has seen what it holds.
    """
    waited_for = sa.and_(
        servers.c.task_state == _DELETING,
        servers.c.deleted_at.is_(None),
        operations.c.lease == owner,
        operations.c.leased_until > utcnow(),
    )
    query = (
        sa.select(operations.c.server_id)
        .join_from(operations, servers, operations.c.server_id == servers.c.id)
        .where(
            among(connection, operations.c.id, ids),
            operations.c.finished_at.is_not(None),
            sa.or_(
                servers.c.node_uuid.is_(None),
                servers.c.task_state == _DELETING,
                servers.c.deleted_at.is_not(None),
            ),
            ~sa.func.coalesce(waited_for, False),
        )
        .distinct()
    )
    for server_id in connection.execute(query).scalars().all():
        queue.enqueue(connection, server_id, GIVE_BACK, {})
    drop_leases(connection, owner, ids)


def drop_leases(connection: Connection, owner: str, ids: Sequence[int]) -> None:
    """Give back the leases of operations that were ended under us."""
    connection.execute(
        sa.update(operations)
        .where(among(connection, operations.c.id, ids), operations.c.lease == owner)
        .values(lease=None, leased_until=None)
    )
