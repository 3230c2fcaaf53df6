"""Services: the processes of the cloud, each known by its host and the name clients give its kind."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, ConflictError, NotFoundError
from moorage.compute.hosts import liveness
from moorage.compute.moves import migrations
from moorage.core.clock import utcnow
from moorage.db.tables.compute import IS_PLACE, nodes, servers, services

AGENT = "nova-compute"
"""What clients call the service that owns nodes."""


@dataclass(frozen=True)
class Service:
    id: int
    uuid: str
    host: str
    binary: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    seen_at: datetime | None
    created_at: datetime
    updated_at: datetime

    def is_up(self, down_time: int) -> bool:
        """Whether it sent a heartbeat in the last `down_time` seconds, and nobody says otherwise."""
        return not self.forced_down and liveness.was_heard(self.seen_at, timedelta(seconds=down_time))


_COLUMNS = tuple(services.c[field.name] for field in fields(Service))


def listed(connection: Connection, *, host: str | None = None, binary: str | None = None) -> list[Service]:
    query = sa.select(*_COLUMNS).order_by(services.c.id)
    if host:
        query = query.where(services.c.host == host)
    if binary:
        query = query.where(services.c.binary == binary)
    return [Service(*row) for row in connection.execute(query)]


def find(connection: Connection, identity: str | int) -> Service:
    """By its UUID, or by its number for old clients."""
    column = services.c.uuid if isinstance(identity, str) else services.c.id
    row = connection.execute(sa.select(*_COLUMNS).where(column == identity)).one_or_none()
    if row is None:
        raise NotFoundError(f"Service {identity} could not be found.")
    return Service(*row)


def find_by_host(connection: Connection, host: str, binary: str) -> Service:
    for service in listed(connection, host=host, binary=binary):
        return service
    raise NotFoundError(f"Could not find binary {binary} on host {host}.")


def find_agent(connection: Connection, host: str) -> Service:
    for service in listed(connection, host=host, binary=AGENT):
        return service
    raise NotFoundError(f"Host {host} could not be found.")


def require_agent(binary: str) -> None:
    """Others take no work that they could be kept from."""
    if binary != AGENT:
        raise ComputeError(
            f"Updating a {binary} service is not supported. Only {AGENT} services can be updated."
        )


def update(connection: Connection, service: Service, **values: Any) -> Service:
    require_agent(service.binary)
    statement = sa.update(services).where(services.c.id == service.id)
    connection.execute(statement.values(updated_at=utcnow(), **values))
    return find(connection, service.id)


def require_deletable(connection: Connection, service: Service) -> None:
    """A host is not forgotten while anything is on it, or on its way."""
    if service.binary != AGENT:
        return
    hosted = sa.select(servers.c.id).where(servers.c.host == service.host, servers.c.deleted_at.is_(None))
    if connection.execute(hosted.limit(1)).one_or_none() is not None:
        raise ConflictError(
            "Unable to delete compute service that is hosting instances. "
            "Migrate or delete the instances first."
        )
    if migrations.any_at(connection, service.host):
        raise ConflictError(
            "Unable to delete compute service that has in-progress migrations. "
            "Complete the migrations or delete the instances first."
        )


def nodes_of(connection: Connection, service: Service) -> list[str]:
    """The UUIDs of a host's nodes, which are those of their providers."""
    if service.binary != AGENT:
        return []
    query = sa.select(nodes.c.uuid).where(nodes.c.host == service.host, IS_PLACE)
    return list(connection.execute(query).scalars())


def delete(connection: Connection, service: Service) -> list[str]:
    """Forget a service and its nodes; the UUIDs of those."""
    require_deletable(connection, service)
    connection.execute(sa.delete(services).where(services.c.id == service.id))
    if service.binary != AGENT:
        return []
    gone = sa.delete(nodes).where(nodes.c.host == service.host).returning(nodes.c.uuid)
    return list(connection.execute(gone).scalars())
