"""How long servers ran in a period, and how much they had meanwhile: what a project is charged for.

Everything comes from the servers' own rows, deleted ones included: from when one was launched until it ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.servers.server_errors import MarkerNotFound
from moorage.db.order import by_character
from moorage.db.tables.compute import servers

_SECONDS_IN_HOUR = 3600.0
_ROWS_AT_A_TIME = 1000


@dataclass(frozen=True)
class Period:
    start: datetime
    stop: datetime


@dataclass(frozen=True)
class ServerUsage:
    """One server that ran in a period."""

    uuid: str
    name: str
    project_id: str
    vm_state: str
    launched_at: datetime
    terminated_at: datetime | None
    flavor_name: str
    vcpus: int
    memory_mb: int
    disk_gb: int

    def hours(self, period: Period) -> float:
        began = max(self.launched_at, period.start)
        ended = period.stop if self.terminated_at is None else min(self.terminated_at, period.stop)
        return max((ended - began).total_seconds(), 0.0) / _SECONDS_IN_HOUR

    def seconds_up(self, now: datetime) -> int:
        """From its launch on, whatever the period is."""
        return int(((self.terminated_at or now) - self.launched_at).total_seconds())


@dataclass
class ProjectUsage:
    """What the servers of one project add up to."""

    project_id: str
    hours: float = 0.0
    vcpu_hours: float = 0.0
    memory_mb_hours: float = 0.0
    disk_gb_hours: float = 0.0
    servers: list[ServerUsage] = field(default_factory=list)
    """As many of them as were asked for."""

    def add(self, server: ServerUsage, hours: float) -> None:
        self.hours += hours
        self.vcpu_hours += server.vcpus * hours
        self.memory_mb_hours += server.memory_mb * hours
        self.disk_gb_hours += server.disk_gb * hours


def page(
    connection: Connection, period: Period, project_id: str | None, limit: int, marker: str | None
) -> list[ServerUsage]:
    """The servers that ran in a period, by project: no more than `limit`, from the one after `marker` on.

    Only their ids are sorted: a page is about a thousand, and a cloud may have had a hundred thousand.
    """
    chosen = _ran(sa.select(servers.c.id), period, project_id).order_by(*_ORDER).limit(limit)
    if marker is not None:
        chosen = chosen.where(_after(connection, marker, project_id))
    query = sa.select(*_COLUMNS).where(servers.c.id.in_(chosen)).order_by(*_ORDER)
    return [ServerUsage(*row) for row in connection.execute(query)]


def every(connection: Connection, period: Period, project_id: str | None) -> Iterator[ServerUsage]:
    """All of them, of which only some are in memory at any time."""
    query = _ran(sa.select(*_COLUMNS), period, project_id).order_by(*_ORDER)
    for row in connection.execution_options(yield_per=_ROWS_AT_A_TIME).execute(query):
        yield ServerUsage(*row)


_ORDER = (by_character(servers.c.project_id), by_character(servers.c.uuid))
_FLAVOR = servers.c.flavor
_COLUMNS: tuple[Any, ...] = (
    servers.c.uuid,
    servers.c.name,
    servers.c.project_id,
    servers.c.vm_state,
    servers.c.launched_at,
    servers.c.terminated_at,
    _FLAVOR["name"].as_string(),
    _FLAVOR["vcpus"].as_integer(),
    _FLAVOR["ram"].as_integer(),
    _FLAVOR["disk"].as_integer() + _FLAVOR["ephemeral"].as_integer(),
)
"""In the order of what a `ServerUsage` has."""


def _ran(query: sa.Select[Any], period: Period, project_id: str | None) -> sa.Select[Any]:
    ended = servers.c.terminated_at
    found = query.where(servers.c.launched_at < period.stop, sa.or_(ended.is_(None), ended > period.start))
    return found if project_id is None else found.where(servers.c.project_id == project_id)


def _after(connection: Connection, marker: str, project_id: str | None) -> sa.ColumnElement[bool]:
    """A marker has to be a server that the caller may know of; it may have run at another time."""
    query = sa.select(servers.c.project_id, servers.c.uuid).where(servers.c.uuid == marker)
    if project_id is not None:
        query = query.where(servers.c.project_id == project_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        raise MarkerNotFound(marker)
    return sa.tuple_(*_ORDER) > sa.tuple_(*(sa.literal(value, sa.String) for value in row))
