"""The ledger: durable operations, which conductors lease, advance and finish.

An operation is one piece of work on one server. Whoever leases it may advance it until the lease ends; every
write is fenced by the lease, so a conductor whose lease has ended can't undo what its successor did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db import lock
from moorage.db.among import among, one_of
from moorage.db.database import Database
from moorage.db.probe import Probe, as_text
from moorage.db.tables.compute import operations, servers

FIRST_STEP = "begin"
GIVE_BACK = "give_back"
"""The kind of operation that releases what a conductor got after its lease had ended."""
_DELETING = "deleting"


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
    """How often the current step has failed in a row."""
    created_at: datetime
    data: dict[str, Any] = field(default_factory=dict)
    action_id: int | None = None
    result: dict[str, Any] | None = None
    """What an agent answered at this attempt; None once it was used."""
    resumed: bool = False
    """A conductor was at it before, and did not come to a checkpoint: it may have done half of a step."""


def enqueue(
    connection: Connection,
    server_id: int,
    kind: str,
    data: dict[str, Any],
    action_id: int | None = None,
    *,
    due_at: datetime | None = None,
) -> int:
    """Write an operation down, in the transaction that makes it necessary; its id.

    Attempts are numbered per server, across operations: an agent ignores whatever has a lower number than
    it has seen, so what an earlier operation still has under way can't undo this one.
    """
    last = sa.select(sa.func.coalesce(sa.func.max(operations.c.attempt), 0)).where(
        operations.c.server_id == server_id
    )
    statement = sa.insert(operations).values(
        server_id=server_id,
        kind=kind,
        step=FIRST_STEP,
        attempt=connection.execute(last).scalar_one() + 1,
        data=data,
        action_id=action_id,
        due_at=due_at or utcnow(),
    )
    return int(connection.execute(statement.returning(operations.c.id)).scalar_one())


def enqueue_first(connection: Connection, kind: str, action_ids: Mapping[int, int]) -> None:
    """Write down the first operation of each of several new servers, by their actions."""
    now = utcnow()
    rows = [
        {"server_id": server_id, "kind": kind, "step": FIRST_STEP, "action_id": action_id, "due_at": now}
        for server_id, action_id in action_ids.items()
    ]
    connection.execute(sa.insert(operations), rows)


def cancel(connection: Connection, server_id: int) -> None:
    """End all unfinished operations of a server.

    A conductor that is at one of them is fenced from now on. Its lease is left to run out, because until
    then it may still have something under way: see `under_way`.
    """
    connection.execute(
        sa.update(operations)
        .where(operations.c.server_id == server_id, operations.c.finished_at.is_(None))
        .values(finished_at=utcnow(), outcome="cancelled", due_at=None)
    )


def nudge(connection: Connection, server_id: int) -> None:
    """Have a look taken soon at what a server's operation waits for: there is something new to know."""
    connection.execute(
        sa.update(operations)
        .where(operations.c.server_id == server_id, operations.c.finished_at.is_(None))
        .values(due_at=utcnow())
    )


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
        "AND (leased_until IS NULL OR leased_until < {now}) AND kind IN ({kinds}) LIMIT 1"
    )

    def __init__(self, database: Database, kinds: Sequence[str]) -> None:
        listed = ", ".join(f"'{kind}'" for kind in kinds)
        self._probe = Probe(
            database.engine,
            postgresql=self._ANY.format(now="$1::text::timestamptz", kinds=listed),
            sqlite=self._ANY.format(now="?1", kinds=listed),
        )

    def any(self) -> bool:
        return bool(self._probe.rows(as_text(utcnow())))


def lease(
    connection: Connection, owner: str, kinds: Sequence[str], count: int, seconds: float
) -> list[Operation]:
    """Take up to `count` operations of these kinds that are due and that nobody else is at.

    A kind that a newer release has brought is left to its conductors.
    """
    now = utcnow()
    before = {
        row.id: row.lease for row in connection.execute(_DUE, {"now": now, "kinds": kinds, "count": count})
    }
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
    sa.select(operations.c.id)
    .where(
        one_of(operations.c.id, "ids"),
        operations.c.lease == sa.bindparam("owner"),
        operations.c.finished_at.is_(None),
    )
    .order_by(operations.c.id)
    .with_for_update()
)


def still_mine(connection: Connection, owner: str, ids: Sequence[int]) -> set[int]:
    """Which of these this conductor still holds; they stay locked until the transaction ends.

    Their servers are locked first, as by users' requests: then no two wait for each other.
    """
    if lock.is_by_row(connection):
        connection.execute(_LOCK_SERVERS, {"ids": ids})
    return set(connection.execute(_MINE, {"ids": ids, "owner": owner}).scalars())


_NO_NEWS = sa.or_(
    operations.c.result.is_(None),
    sa.bindparam("used", type_=sa.Boolean),
    operations.c.attempt != sa.bindparam("attempt"),
)
"""No result has come in, or it was used, or it is about an attempt that this very write ends."""

_SAVE = (
    sa.update(operations)
    .where(operations.c.id == sa.bindparam("of"))
    .values(
        {name: sa.bindparam(name) for name in ("step", "attempt", "tries", "data", "leased_until", "lease")}
        | {
            "result": sa.case((_NO_NEWS, sa.null()), else_=operations.c.result),
            "due_at": sa.case((_NO_NEWS, sa.bindparam("due")), else_=sa.bindparam("now")),
        }
    )
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far an operation is; without a lease it is free until `due_at`."""

    operation: Operation
    due_at: datetime
    used_result: bool = False
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
        enqueue(connection, server_id, GIVE_BACK, {})
    drop_leases(connection, owner, ids)


def drop_leases(connection: Connection, owner: str, ids: Sequence[int]) -> None:
    """Give back the leases of operations that were ended under us."""
    connection.execute(
        sa.update(operations)
        .where(among(connection, operations.c.id, ids), operations.c.lease == owner)
        .values(lease=None, leased_until=None)
    )


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
