"""Host aggregates: named groups of hosts, with metadata that zones, isolation and ratios are read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import NotFoundError
from moorage.db.among import among
from moorage.db.tables.aggregates import aggregate_hosts, aggregates, revisions

ZONE = "availability_zone"
"""The metadata key that makes an aggregate an availability zone."""
_SUBJECT = "aggregates"


class AggregateNotFound(NotFoundError):
    def __init__(self, aggregate_id: int | str) -> None:
        super().__init__(f"Aggregate {aggregate_id} could not be found.")


@dataclass(frozen=True)
class Aggregate:
    id: int
    uuid: str
    name: str
    metadata: Mapping[str, str]
    created_at: datetime
    updated_at: datetime | None
    hosts: tuple[str, ...]

    @property
    def zone(self) -> str | None:
        return self.metadata.get(ZONE)


_COLUMNS = (
    aggregates.c.id,
    aggregates.c.uuid,
    aggregates.c.name,
    aggregates.c.metadata,
    aggregates.c.created_at,
    aggregates.c.updated_at,
)


def listed(connection: Connection) -> list[Aggregate]:
    """All of them, the oldest first."""
    return _read(connection, sa.select(*_COLUMNS))


def of_host(connection: Connection, host: str) -> list[Aggregate]:
    """Those that a host is in."""
    joined = sa.select(aggregate_hosts.c.aggregate_id).where(aggregate_hosts.c.host == host)
    return _read(connection, sa.select(*_COLUMNS).where(aggregates.c.id.in_(joined)))


def find(connection: Connection, aggregate_id: int) -> Aggregate:
    for aggregate in _read(connection, sa.select(*_COLUMNS).where(aggregates.c.id == aggregate_id)):
        return aggregate
    raise AggregateNotFound(aggregate_id)


def revision(connection: Connection) -> int:
    """Grows with every change of any aggregate, its hosts or its metadata."""
    query = sa.select(revisions.c.revision).where(revisions.c.subject == _SUBJECT)
    return connection.execute(query).scalar_one_or_none() or 0


def _read(connection: Connection, query: sa.Select[Any]) -> list[Aggregate]:
    rows = connection.execute(query.order_by(aggregates.c.id)).all()
    hosts: dict[int, list[str]] = {row.id: [] for row in rows}
    members = (
        sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host)
        .where(among(connection, aggregate_hosts.c.aggregate_id, list(hosts)))
        .order_by(aggregate_hosts.c.host)
    )
    for aggregate_id, host in connection.execute(members) if rows else ():
        hosts[aggregate_id].append(host)
    return [Aggregate(**row._mapping, hosts=tuple(hosts[row.id])) for row in rows]
