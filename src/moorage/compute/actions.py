"""Actions: what was done to a server, by whom, and how each step of it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, NotFoundError
from moorage.core.clock import utcnow
from moorage.db.tables.compute import actions

SUCCESS = "Success"
ERROR = "Error"


@dataclass(frozen=True)
class Origin:
    """Who asked, in which request."""

    request_id: str
    user_id: str
    project_id: str


@dataclass(slots=True)
class Action:
    id: int
    server_id: int
    action: str
    request_id: str
    user_id: str
    project_id: str
    message: str | None
    started_at: datetime
    updated_at: datetime
    events: list[dict[str, Any]]


def start(connection: Connection, server_id: int, action: str, origin: Origin) -> int:
    """Write down that something begins to be done to a server; the action's id."""
    return start_many(connection, {server_id: origin}, action)[server_id]


def start_many(connection: Connection, origins: Mapping[int, Origin], action: str) -> dict[int, int]:
    """As `start`, for several servers at once: the ids of the actions by server."""
    rows = [
        {
            "server_id": server_id,
            "action": action,
            "request_id": origin.request_id,
            "user_id": origin.user_id,
            "project_id": origin.project_id,
        }
        for server_id, origin in origins.items()
    ]
    statement = sa.insert(actions).returning(actions.c.server_id, actions.c.id)
    return {row.server_id: row.id for row in connection.execute(statement, rows)}


def event(
    connection: Connection,
    action_id: int | None,
    name: str,
    *,
    started_at: datetime | None = None,
    host: str | None = None,
    error: str | None = None,
) -> None:
    """Add a finished step; an operation that nobody asked for has no action, and then nothing is written."""
    if action_id is None:
        return
    now = utcnow()
    step = {
        "event": name,
        "start_time": (started_at or now).isoformat(),
        "finish_time": now.isoformat(),
        "result": SUCCESS if error is None else ERROR,
        "host": host,
        "details": error,
    }
    query = sa.select(actions.c.events).where(actions.c.id == action_id).with_for_update()
    known = connection.execute(query).scalar_one_or_none()
    if known is None:
        return
    values: dict[str, Any] = {"events": [*known, step], "updated_at": now}
    if error is not None:
        values["message"] = ERROR
    connection.execute(sa.update(actions).where(actions.c.id == action_id).values(**values))


def finish(connection: Connection, action_id: int | None, *, error: str | None = None) -> None:
    """Say that the action is over; with `error`, that it failed."""
    if action_id is None:
        return
    values: dict[str, Any] = {"updated_at": utcnow()}
    if error is not None:
        values["message"] = ERROR
    connection.execute(sa.update(actions).where(actions.c.id == action_id).values(**values))


def of_server(
    connection: Connection,
    server_id: int,
    *,
    since: datetime | None = None,
    before: datetime | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[Action]:
    """The newest first."""
    query = sa.select(actions).where(actions.c.server_id == server_id)
    if since is not None:
        query = query.where(actions.c.updated_at >= since)
    if before is not None:
        query = query.where(actions.c.updated_at <= before)
    if marker is not None:
        query = query.where(actions.c.id < _marked(connection, server_id, marker))
    query = query.order_by(actions.c.id.desc())
    return [Action(*row) for row in connection.execute(query if limit is None else query.limit(limit))]


def _marked(connection: Connection, server_id: int, request_id: str) -> int:
    query = sa.select(sa.func.max(actions.c.id)).where(
        actions.c.server_id == server_id, actions.c.request_id == request_id
    )
    found = connection.execute(query).scalar_one()
    if found is None:
        raise ComputeError(f"Marker {request_id} could not be found.")
    return int(found)


def find(connection: Connection, server_id: int, request_id: str) -> Action:
    query = (
        sa.select(actions)
        .where(actions.c.server_id == server_id, actions.c.request_id == request_id)
        .order_by(actions.c.id.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        raise NotFoundError(f"Action {request_id} not found")
    return Action(*row)
