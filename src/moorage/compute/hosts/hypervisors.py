"""Hypervisors: the nodes of all hosts, as the API shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, NotFoundError
from moorage.compute.hosts import machine_failures
from moorage.compute.hosts.services import AGENT, Service, listed
from moorage.compute.servers.states import VmState
from moorage.db.among import among
from moorage.db.tables.compute import IS_PLACE, nodes, servers


@dataclass(frozen=True)
class Usage:
    """What the servers on a node use of it."""

    servers: int = 0
    vcpus: int = 0
    ram_mb: int = 0
    disk_gb: int = 0
    busy: int = 0
    """Servers that something is being done to."""


@dataclass(frozen=True)
class Hypervisor:
    id: int
    uuid: str
    name: str
    host: str
    hypervisor_type: str
    facts: dict[str, Any]
    service: Service
    usage: Usage = Usage()
    quarantine: str | None = None
    """Why no server comes to it, if it failed too often; where that was asked for."""
    hosted: list[tuple[str, str]] = field(default_factory=list)
    """Name and UUID of each server, where they were asked for."""

    def fact(self, name: str, default: Any = 0) -> Any:
        return self.facts.get(name, default)


_PLACES = sa.select(
    nodes.c.id, nodes.c.uuid, nodes.c.name, nodes.c.host, nodes.c.hypervisor_type, nodes.c.facts
).where(IS_PLACE)


def find(connection: Connection, identity: str | int) -> Hypervisor:
    """By its UUID, or by its number for old clients."""
    column = nodes.c.uuid if isinstance(identity, str) else nodes.c.id
    found = _read(connection, _PLACES.where(column == identity))
    if not found:
        raise NotFoundError(f"Hypervisor with ID '{identity}' could not be found.")
    return found[0]


def first_of_host(connection: Connection, host: str) -> Hypervisor:
    """The oldest node of a host, for an API in which a host has one."""
    found = _read(connection, _PLACES.where(nodes.c.host == host).order_by(nodes.c.id).limit(1))
    if not found:
        raise NotFoundError(f"Compute host {host} could not be found.")
    return found[0]


def page(
    connection: Connection, marker: str | int | None = None, limit: int | None = None
) -> list[Hypervisor]:
    query = _PLACES.order_by(nodes.c.id)
    if marker is not None:
        column = nodes.c.uuid if isinstance(marker, str) else nodes.c.id
        start = connection.execute(sa.select(nodes.c.id).where(column == marker)).scalar_one_or_none()
        if start is None:
            raise ComputeError(f"marker [{marker}] not found")
        query = query.where(nodes.c.id > start)
    return _read(connection, query if limit is None else query.limit(limit))


def matching(connection: Connection, pattern: str) -> list[Hypervisor]:
    """Those with `pattern` somewhere in their name."""
    query = _PLACES.where(nodes.c.name.contains(pattern, autoescape=True)).order_by(nodes.c.id)
    found = _read(connection, query)
    if not found:
        raise NotFoundError(f"No hypervisor matching '{pattern}' could be found.")
    return found


def _read(connection: Connection, query: sa.Select[Any]) -> list[Hypervisor]:
    """A node whose host has no service any more is not shown."""
    owners = {service.host: service for service in listed(connection, binary=AGENT)}
    return [
        Hypervisor(row.id, row.uuid, row.name, row.host, row.hypervisor_type, row.facts, owners[row.host])
        for row in connection.execute(query)
        if row.host in owners
    ]


def with_usage(connection: Connection, found: Iterable[Hypervisor]) -> list[Hypervisor]:
    found = list(found)
    usages = _usages(connection, [hypervisor.uuid for hypervisor in found])
    return [replace(hypervisor, usage=usages.get(hypervisor.uuid, Usage())) for hypervisor in found]


def with_servers(connection: Connection, found: Iterable[Hypervisor]) -> list[Hypervisor]:
    found = list(found)
    hosted: dict[str, list[tuple[str, str]]] = {}
    query = _living(connection, found, servers.c.node_uuid, servers.c.name, servers.c.uuid)
    for node_uuid, name, uuid in connection.execute(query.order_by(servers.c.id)):
        hosted.setdefault(node_uuid, []).append((name, uuid))
    return [replace(hypervisor, hosted=hosted.get(hypervisor.uuid, [])) for hypervisor in found]


def with_quarantine(connection: Connection, found: Iterable[Hypervisor]) -> list[Hypervisor]:
    found = list(found)
    kept_out = machine_failures.quarantined(connection, [hypervisor.uuid for hypervisor in found])
    return [
        replace(hypervisor, quarantine=kept_out[hypervisor.uuid].reason)
        if hypervisor.uuid in kept_out
        else hypervisor
        for hypervisor in found
    ]


def _living(connection: Connection, found: list[Hypervisor], *columns: Any) -> sa.Select[Any]:
    uuids = [hypervisor.uuid for hypervisor in found]
    return sa.select(*columns).where(
        among(connection, servers.c.node_uuid, uuids), servers.c.deleted_at.is_(None)
    )


def _usages(connection: Connection, node_uuids: list[str]) -> dict[str, Usage]:
    flavor = servers.c.flavor
    query = (
        sa.select(
            servers.c.node_uuid,
            sa.func.count(),
            sa.func.sum(flavor["vcpus"].as_integer()),
            sa.func.sum(flavor["ram"].as_integer()),
            sa.func.sum(flavor["disk"].as_integer() + flavor["ephemeral"].as_integer()),
            sa.func.count(servers.c.task_state),
        )
        .where(
            among(connection, servers.c.node_uuid, node_uuids),
            servers.c.deleted_at.is_(None),
            servers.c.vm_state != VmState.DELETED,
        )
        .group_by(servers.c.node_uuid)
    )
    return {
        row[0]: Usage(int(row[1]), int(row[2]), int(row[3]), int(row[4]), int(row[5]))
        for row in connection.execute(query)
    }
