"""Drains and rebalances: begun, found and cancelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from moorage.compute.drains.drain import (
    Drain,
    DrainState,
    DrainWay,
    LeavingServer,
    LeavingState,
    WantedMove,
)
from moorage.compute.errors import ConflictError, NotFoundError
from moorage.compute.hosts import services
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.server import COLUMNS, Server, from_row
from moorage.compute.servers.server_errors import ServerNotFound
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.compute import servers
from moorage.db.tables.compute import services as service_table
from moorage.db.tables.drains import drained_servers, drains
from moorage.scheduler.rebalance.proposal import Goal

_DRAINED = "drained "
"""How the reason begins for which a drain disables a host; an operator's own says something else."""
_SEVERAL = ""
"""In the place of the host of a rebalance. A conductor of the release before takes it for a host without
servers, and calls the servers of the rebalance gone: nothing is moved, and nothing is lost."""
_LEAVING = tuple(drained_servers.c[each.name] for each in fields(LeavingServer))


def begin(
    connection: Connection,
    host: str,
    way: DrainWay,
    max_parallel: int,
    deadline_at: datetime | None,
    origin: Origin,
    *,
    down_time: int,
) -> Drain:
    """Nothing comes to the host from now on, and conductors begin to move what is there."""
    service = services.find_agent(connection, host)
    held = sa.select(service_table.c.id).where(service_table.c.id == service.id).with_for_update()
    connection.execute(held)  # nobody else begins to drain it
    if unfinished(connection, host) is not None:
        raise ConflictError(f"Host {host} is being drained already.")
    require_state(connection, host, way, down_time=down_time)
    uuid = uuids.generate()
    # What an earlier drain disabled may be enabled again, as after one whose host died in the midst of it.
    is_ours = not service.disabled or (service.disabled_reason or "").startswith(_DRAINED)
    if is_ours:
        services.update(connection, service, disabled=True, disabled_reason=f"{_DRAINED}({uuid})")
    drain = _write(
        connection,
        origin,
        uuid=uuid,
        host=host,
        way=way.value,
        max_parallel=max_parallel,
        deadline_at=deadline_at,
        disabled_host=is_ours,
    )
    meet(connection, drain.id, servers_on(connection, host))
    return drain


def begin_rebalance(
    connection: Connection,
    goal: Goal,
    way: DrainWay,
    moves: Sequence[WantedMove],
    max_parallel: int,
    deadline_at: datetime | None,
    origin: Origin,
) -> Drain:
    """Conductors begin to make these moves; the scheduler is asked about each when its turn comes.

    Two that begin at the same moment may both find that there is none: a server is moved by the one that
    comes to it first, and is gone for the other.
    """
    if unfinished(connection, _SEVERAL) is not None:
        raise ConflictError("A rebalance is under way already.")
    for host in {move.source_host for move in moves} | {move.target_host for move in moves}:
        services.find_agent(connection, host)
    numbers = _numbers(connection, [move.server_uuid for move in moves])
    drain = _write(
        connection,
        origin,
        uuid=uuids.generate(),
        host=_SEVERAL,
        goal=goal.value,
        way=way.value,
        max_parallel=max_parallel,
        deadline_at=deadline_at,
        disabled_host=False,
    )
    rows = [
        {
            "drain_id": drain.id,
            "server_id": numbers[move.server_uuid],
            "server_uuid": move.server_uuid,
            "state": LeavingState.WAITING.value,
            "source_host": move.source_host,
            "target_host": move.target_host,
        }
        for move in moves
    ]
    connection.execute(sa.insert(drained_servers), rows)
    return drain


def _write(connection: Connection, origin: Origin, **columns: Any) -> Drain:
    values = {
        "state": DrainState.RUNNING.value,
        "request_id": origin.request_id,
        "user_id": origin.user_id,
        "project_id": origin.project_id,
        **columns,
    }
    made = connection.execute(sa.insert(drains).values(**values).returning(drains.c.id)).scalar_one()
    return _read(connection.execute(sa.select(drains).where(drains.c.id == made)).one())


def _numbers(connection: Connection, server_uuids: Sequence[str]) -> dict[str, int]:
    """The rows of these servers, also of those that are deleted: they will be found to be gone."""
    query = sa.select(servers.c.uuid, servers.c.id).where(among(connection, servers.c.uuid, server_uuids))
    found: dict[str, int] = dict(connection.execute(query).all())
    for uuid in server_uuids:
        if uuid not in found:
            raise ServerNotFound(uuid)
    return found


def require_state(connection: Connection, host: str, way: DrainWay, *, down_time: int) -> None:
    """A dead host can send nothing away, and what a living one has may not be started a second time."""
    up = services.find_agent(connection, host).is_up(down_time)
    if way is DrainWay.EVACUATE and up:
        raise ConflictError(f"Host {host} is up: it can be drained, not evacuated.")
    if way is not DrainWay.EVACUATE and not up:
        raise ConflictError(f"Host {host} is down: it can't be drained, but evacuated.")


def meet(connection: Connection, drain_id: int, found: Sequence[Server]) -> None:
    """Servers that the drain has not dealt with so far."""
    rows = [
        {
            "drain_id": drain_id,
            "server_id": server.id,
            "server_uuid": server.uuid,
            "state": LeavingState.WAITING.value,
        }
        for server in found
    ]
    if rows:
        connection.execute(sa.insert(drained_servers), rows)


def servers_on(connection: Connection, host: str) -> list[Server]:
    query = sa.select(*COLUMNS).where(servers.c.host == host, servers.c.deleted_at.is_(None))
    return [from_row(row) for row in connection.execute(query.order_by(servers.c.id))]


def find(connection: Connection, uuid: str) -> Drain:
    row = connection.execute(sa.select(drains).where(drains.c.uuid == uuid)).one_or_none()
    if row is None:
        raise NotFoundError(f"Drain {uuid} could not be found.")
    return _read(row)


def listed(connection: Connection, host: str | None = None, limit: int = 100) -> list[Drain]:
    """Those of hosts, or of one, the newest first."""
    of_host = drains.c.host != _SEVERAL if host is None else drains.c.host == host
    return _newest(connection, of_host, limit)


def rebalances(connection: Connection, limit: int = 100) -> list[Drain]:
    """The newest first."""
    return _newest(connection, drains.c.host == _SEVERAL, limit)


def _newest(connection: Connection, which: sa.ColumnElement[bool], limit: int) -> list[Drain]:
    query = sa.select(drains).where(which).order_by(drains.c.id.desc()).limit(limit)
    return [_read(row) for row in connection.execute(query)]


def unfinished(connection: Connection, host: str) -> Drain | None:
    query = sa.select(drains).where(drains.c.host == host, drains.c.finished_at.is_(None))
    row = connection.execute(query.limit(1)).one_or_none()
    return None if row is None else _read(row)


def all_unfinished(connection: Connection) -> list[int]:
    query = sa.select(drains.c.id).where(drains.c.finished_at.is_(None)).order_by(drains.c.id)
    return list(connection.execute(query).scalars())


def lock(connection: Connection, drain_id: int) -> Drain | None:
    """None if it is finished, or if another conductor has it in its hands right now."""
    query = sa.select(drains).where(drains.c.id == drain_id, drains.c.finished_at.is_(None))
    row = connection.execute(query.with_for_update(skip_locked=True)).one_or_none()
    return None if row is None else _read(row)


def cancel(connection: Connection, uuid: str) -> Drain:
    """Nothing more begins. Said again, nothing more happens."""
    drain = find(connection, uuid)
    if drain.finished_at is not None:
        raise ConflictError(f"{drain.noun.capitalize()} {uuid} is over.")
    running = (drains.c.id == drain.id, drains.c.state == DrainState.RUNNING.value)
    connection.execute(sa.update(drains).where(*running).values(state=DrainState.CANCELLING.value))
    return find(connection, uuid)


def finish(connection: Connection, drain: Drain) -> None:
    ended = DrainState.CANCELLED if drain.state is DrainState.CANCELLING else DrainState.FINISHED
    statement = sa.update(drains).where(drains.c.id == drain.id)
    connection.execute(statement.values(state=ended.value, finished_at=utcnow()))


def leaving(connection: Connection, drain_id: int) -> list[LeavingServer]:
    """The servers that it has dealt with, or will."""
    query = sa.select(*_LEAVING).where(drained_servers.c.drain_id == drain_id)
    return [_leaving(row) for row in connection.execute(query.order_by(drained_servers.c.server_id))]


def note(connection: Connection, drain_id: int, server_id: int, **columns: Any) -> None:
    """What becomes of a server."""
    statement = sa.update(drained_servers).where(
        drained_servers.c.drain_id == drain_id, drained_servers.c.server_id == server_id
    )
    connection.execute(statement.values(updated_at=utcnow(), **columns))


def counts(connection: Connection, drain_ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """How many servers of each are in which state."""
    table = drained_servers
    query = (
        sa.select(table.c.drain_id, table.c.state, sa.func.count())
        .where(among(connection, table.c.drain_id, drain_ids))
        .group_by(table.c.drain_id, table.c.state)
    )
    found: dict[int, Counter[str]] = {drain_id: Counter() for drain_id in drain_ids}
    for drain_id, state, count in connection.execute(query):
        found[drain_id][state] = count
    return {
        drain_id: {state.value: tally[state] for state in LeavingState} for drain_id, tally in found.items()
    }


def _read(row: Row[Any]) -> Drain:
    return Drain(
        row.id,
        row.uuid,
        row.host or None,
        DrainWay(row.way),
        row.max_parallel,
        row.deadline_at,
        DrainState(row.state),
        row.disabled_host,
        Origin(row.request_id, row.user_id, row.project_id),
        row.created_at,
        row.finished_at,
        None if row.goal is None else Goal(row.goal),
    )


def _leaving(row: Row[Any]) -> LeavingServer:
    server_id, uuid, state, *more = tuple(row)
    return LeavingServer(server_id, uuid, LeavingState(state), *more)
