"""Host aggregates: named groups of hosts, with metadata that zones, isolation and ratios are read from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.aggregates import outbox
from moorage.compute.errors import ComputeError, ConflictError, NotFoundError
from moorage.compute.hosts import services
from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import lock, revisions
from moorage.db.among import among
from moorage.db.order import by_character
from moorage.db.tables.aggregates import aggregate_hosts, aggregates, deleted_aggregates
from moorage.db.tables.compute import servers

ZONE = "availability_zone"
"""The metadata key that makes an aggregate an availability zone."""
SUBJECT = "aggregates"
"""Its revision grows with every change of any aggregate, its hosts or its metadata."""


class AggregateNotFound(NotFoundError):
    def __init__(self, aggregate_id: int | str) -> None:
        super().__init__(f"Aggregate {aggregate_id} could not be found.")


class AggregateHostNotFound(NotFoundError):
    def __init__(self, aggregate_id: int, host: str) -> None:
        super().__init__(f"Cannot remove host {host} in aggregate {aggregate_id}")


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


def _read(connection: Connection, query: sa.Select[Any]) -> list[Aggregate]:
    rows = connection.execute(query.order_by(aggregates.c.id)).all()
    hosts: dict[int, list[str]] = {row.id: [] for row in rows}
    members = (
        sa.select(aggregate_hosts.c.aggregate_id, aggregate_hosts.c.host)
        .where(among(connection, aggregate_hosts.c.aggregate_id, list(hosts)))
        .order_by(by_character(aggregate_hosts.c.host))
    )
    for aggregate_id, host in connection.execute(members) if rows else ():
        hosts[aggregate_id].append(host)
    return [Aggregate(**row._mapping, hosts=tuple(hosts[row.id])) for row in rows]


def create(connection: Connection, name: str, zone: str | None) -> Aggregate:
    _begin_change(connection)
    _refuse_name(connection, name)
    metadata = {ZONE: zone} if zone else {}
    row = sa.insert(aggregates).values(uuid=uuids.generate(), name=name, metadata=metadata)
    return find(connection, connection.execute(row.returning(aggregates.c.id)).scalar_one())


def change(
    connection: Connection,
    aggregate_id: int,
    *,
    name: str | None = None,
    metadata: Mapping[str, str | None],
    what: str = "",
) -> Aggregate:
    """Give it another name, other metadata, or both; a value of None deletes the key.

    `what` is said to have failed if it can't be done.
    """
    _begin_change(connection)
    aggregate = find(connection, aggregate_id)
    if name is not None and name != aggregate.name:
        _refuse_name(connection, name)
    if ZONE in metadata:
        problem = _problem_with_zone(connection, aggregate, metadata[ZONE])
        if problem is not None:
            raise ComputeError(f"Cannot update {what}aggregate {aggregate_id}. Reason: {problem}.")
    merged = {**aggregate.metadata, **metadata}
    connection.execute(
        sa.update(aggregates)
        .where(aggregates.c.id == aggregate_id)
        .values(
            name=aggregate.name if name is None else name,
            metadata={key: value for key, value in merged.items() if value is not None},
            updated_at=utcnow(),
        )
    )
    return find(connection, aggregate_id)


def delete(connection: Connection, aggregate_id: int) -> Aggregate:
    """What was deleted; its UUID is kept until the mirror knows that no provider has it any more."""
    _begin_change(connection)
    aggregate = find(connection, aggregate_id)
    if aggregate.hosts:
        raise ComputeError(
            f"Cannot remove host from aggregate {aggregate_id}. Reason: Host aggregate is not empty."
        )
    connection.execute(sa.delete(aggregates).where(aggregates.c.id == aggregate_id))
    connection.execute(sa.insert(deleted_aggregates).values(uuid=aggregate.uuid))
    outbox.mark(connection, [aggregate.uuid])
    return aggregate


def add_host(connection: Connection, aggregate_id: int, host: str) -> Aggregate:
    _begin_change(connection)
    if not services.listed(connection, host=host, binary=services.AGENT):
        raise NotFoundError(f"Compute host {host} could not be found.")
    aggregate = find(connection, aggregate_id)
    if aggregate.zone is not None:
        _refuse_new_zone(connection, aggregate, host)
    if host in aggregate.hosts:
        raise ConflictError(f"Aggregate {aggregate_id} already has host {host}.")
    connection.execute(sa.insert(aggregate_hosts).values(aggregate_id=aggregate_id, host=host))
    outbox.mark_host(connection, host)
    return find(connection, aggregate_id)


def remove_host(connection: Connection, aggregate_id: int, host: str) -> Aggregate:
    _begin_change(connection)
    aggregate = find(connection, aggregate_id)
    if host not in aggregate.hosts:
        raise AggregateHostNotFound(aggregate_id, host)
    _refuse_lost_zone(connection, aggregate, host)
    connection.execute(
        sa.delete(aggregate_hosts).where(
            aggregate_hosts.c.aggregate_id == aggregate_id, aggregate_hosts.c.host == host
        )
    )
    outbox.mark_host(connection, host)
    return find(connection, aggregate_id)


def forget_host(connection: Connection, host: str) -> None:
    """A host is gone for good, and with it its place in all aggregates."""
    _begin_change(connection)
    connection.execute(sa.delete(aggregate_hosts).where(aggregate_hosts.c.host == host))


def _begin_change(connection: Connection) -> None:
    """One change at a time, since zones are a matter of all aggregates; readers learn that there was one."""
    lock.by_name(connection, SUBJECT)
    revisions.grow(connection, SUBJECT)


def _refuse_name(connection: Connection, name: str) -> None:
    if connection.execute(sa.select(aggregates.c.id).where(aggregates.c.name == name)).first() is not None:
        raise ConflictError(f"Aggregate {name} already exists.")


def _problem_with_zone(connection: Connection, aggregate: Aggregate, zone: str | None) -> str | None:
    """Why an aggregate can't be made this zone."""
    if not zone:
        return f"Aggregate {aggregate.name} does not support empty named availability zone"
    problem = _other_zones(connection, aggregate, aggregate.hosts, zone)
    if problem is None and zone != aggregate.zone and _count_servers(connection, aggregate.hosts):
        return "One or more hosts contain instances in this zone"
    return problem


def _other_zones(
    connection: Connection, aggregate: Aggregate, hosts: Collection[str], zone: str
) -> str | None:
    """A host is in one zone: what keeps these hosts from being in `zone`."""
    members = sa.select(aggregate_hosts.c.aggregate_id).where(
        among(connection, aggregate_hosts.c.host, hosts), aggregate_hosts.c.aggregate_id != aggregate.id
    )
    others = _read(connection, sa.select(*_COLUMNS).where(aggregates.c.id.in_(members)))
    zones = [other.zone for other in others if other.zone not in (None, zone)]
    return f"One or more hosts already in availability zone(s) {zones}" if zones else None


def _refuse_new_zone(connection: Connection, aggregate: Aggregate, host: str) -> None:
    """Servers don't change their zone under way, so a host that has some can't either."""
    assert aggregate.zone is not None
    problem = _other_zones(connection, aggregate, [host], aggregate.zone)
    zones = {one.zone for one in of_host(connection, host)} - {None}
    if problem is None and not zones:
        problem = _problem_with_move(connection, "added to", host, None, aggregate.zone)
    if problem is not None:
        raise ConflictError(f"Cannot add host to aggregate {aggregate.id}. Reason: {problem}.")


def _refuse_lost_zone(connection: Connection, aggregate: Aggregate, host: str) -> None:
    others = {one.zone for one in of_host(connection, host) if one.id != aggregate.id}
    if aggregate.zone is None or aggregate.zone in others:
        return
    problem = _problem_with_move(connection, "removed from", host, aggregate.zone, None)
    if problem is not None:
        raise ConflictError(f"Cannot remove host from aggregate {aggregate.id}. Reason: {problem}.")


def _problem_with_move(
    connection: Connection, done: str, host: str, before: str | None, after: str | None
) -> str | None:
    count = _count_servers(connection, [host])
    if not count:
        return None
    return (
        f"The host cannot be {done} the aggregate as the availability zone of the host would change from "
        f"'{before}' to '{after}' but the host already has {count} instance(s). "
        "Move them away from this host, then try again"
    )


def _count_servers(connection: Connection, hosts: Collection[str]) -> int:
    query = sa.select(sa.func.count()).where(
        among(connection, servers.c.host, hosts), servers.c.deleted_at.is_(None)
    )
    return int(connection.execute(query).scalar_one())
