"""Where a user wants a server to go: a zone, and for administrators a host or a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.aggregates.zones import Zones
from moorage.compute.errors import ComputeError
from moorage.compute.hosts import node_capabilities
from moorage.compute.hosts.services import AGENT, listed
from moorage.db.tables.compute import nodes, services


@dataclass(frozen=True)
class Destination:
    zone: str | None = None
    host: str | None = None
    node: str | None = None
    forced: bool = False
    """An administrator's word that the scheduler does not question."""


ANYWHERE = Destination()


def parse(text: str | None) -> Destination:
    """`zone`, `zone:host`, `zone:host:node` or `zone::node`; who names a host means it."""
    parts = (text or "").split(":")
    if len(parts) > 3:
        raise ComputeError("Unable to parse availability_zone")
    zone, host, node = (*parts, "", "")[:3]
    return Destination(zone or None, host or None, node or None, forced=bool(host or node))


def check(connection: Connection, place: Destination, zones: Zones) -> None:
    """Refuse what does not exist; a forced host decides the zone by itself."""
    if place.host is not None:
        agents = sa.select(services.c.id).where(services.c.binary == AGENT)
        if not _any(connection, agents.where(services.c.host == place.host)):
            raise ComputeError(f"Compute host {place.host} could not be found.")
    if place.node is not None:
        known = sa.select(nodes.c.id).where(nodes.c.name == place.node)
        if place.host is not None:  # whose pool, if it has one, may have such a machine: its agent knows
            pool = sa.and_(nodes.c.name == place.host, node_capabilities.is_pool())
            known = sa.select(nodes.c.id).where(
                nodes.c.host == place.host, (nodes.c.name == place.node) | pool
            )
        if not _any(connection, known):
            raise ComputeError(f"Compute host {place.node} could not be found.")
    if place.zone is None or place.forced:
        return
    if not zones.takes_servers(place.zone, listed(connection, binary=AGENT)):
        raise ComputeError("The requested availability zone is not available")


def _any(connection: Connection, query: sa.Select[Any]) -> bool:
    return connection.execute(query.limit(1)).first() is not None
