"""Actions: what was done to a server, by whom, and how each step of it ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, NotFoundError
from moorage.core.clock import utcnow
from moorage.core.context import WorkContext
from moorage.db.among import one_of
from moorage.db.tables.compute import actions

SUCCESS = "Success"
ERROR = "Error"


@dataclass(frozen=True)
class Origin:
    """Who asked, in which request."""

    request_id: str
    user_id: str
    project_id: str
    global_request_id: str = ""
    """The caller's own, if it has told one."""

    @property
    def request_ids(self) -> str:
        return WorkContext(self.request_id, self.global_request_id).request_ids


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
    return dict(connection.execute(_START, rows).all())


_START = sa.insert(actions).returning(actions.c.server_id, actions.c.id)


@dataclass(frozen=True, slots=True)
class Event:
    """A finished step of an action."""

    action_id: int | None
    """None if nobody asked for it: then there is no action, and nothing is written."""
    name: str
    host: str | None = None
    error: str | None = None
    started_at: datetime | None = None
    finished_at: datetime = field(default_factory=utcnow)

    def as_shown(self) -> dict[str, Any]:
        return {
            "event": self.name,
            "start_time": (self.started_at or self.finished_at).isoformat(),
            "finish_time": self.finished_at.isoformat(),
            "result": SUCCESS if self.error is None else ERROR,
            "host": self.host,
            "details": self.error,
        }


def add_events(connection: Connection, events: Sequence[Event]) -> None:
    by_action: dict[int, list[Event]] = defaultdict(list)
    for event in events:
        if event.action_id is not None:
            by_action[event.action_id].append(event)
    rows = [
        {
            "of": action_id,
            "events": [*known, *(event.as_shown() for event in by_action[action_id])],
            "message": ERROR if any(event.error for event in by_action[action_id]) else message,
            "now": by_action[action_id][-1].finished_at,
        }
        for action_id, known, message in connection.execute(_KNOWN, {"ids": by_action})
    ]
    if rows:
        connection.execute(_ADD_EVENTS, rows)


_KNOWN = (
    sa.select(actions.c.id, actions.c.events, actions.c.message)
    .where(one_of(actions.c.id, "ids"))
    .order_by(actions.c.id)
    .with_for_update()
)
_ADD_EVENTS = (
    sa.update(actions)
    .where(actions.c.id == sa.bindparam("of"))
    .values(events=sa.bindparam("events"), message=sa.bindparam("message"), updated_at=sa.bindparam("now"))
)


def record(connection: Connection, server_id: int, action: str, origin: Origin, event: Event) -> None:
    """Write down an action that is over already, with its one event."""
    action_id = start(connection, server_id, action, origin)
    add_events(connection, [replace(event, action_id=action_id)])
    finish(connection, {action_id: event.error})


def finish(connection: Connection, errors: Mapping[int, str | None]) -> None:
    """Say that actions (by id) are over; those with an error have failed."""
    now = utcnow()
    failed = [{"of": action_id, "now": now} for action_id, error in errors.items() if error is not None]
    done = [{"of": action_id, "now": now} for action_id, error in errors.items() if error is None]
    if failed:
        connection.execute(_FAIL, failed)
    if done:
        connection.execute(_FINISH, done)


_FINISH = sa.update(actions).where(actions.c.id == sa.bindparam("of")).values(updated_at=sa.bindparam("now"))
_FAIL = _FINISH.values(message=ERROR)


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
