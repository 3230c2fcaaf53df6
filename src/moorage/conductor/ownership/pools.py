"""Pools: nodes that are no machines, but offer those of a whole partition."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.bus.contract import Heartbeat, ObservedServer
from moorage.compute.hosts import node_capabilities
from moorage.compute.hosts.peers import TERMS
from moorage.db.among import among
from moorage.db.tables.compute import nodes, servers
from moorage.drivers.shared_nodes import has_pool


def without_reserved(connection: Connection, heartbeat: Heartbeat) -> Mapping[str, ObservedServer]:
    """What a host sees, but for servers in a pool of others if it has none itself.

    Such a host may own the machine that another one has reserved, and sees the server on it. It is not its to
    end.
    """
    terms = heartbeat.facts.get(TERMS) or {}
    if not heartbeat.observed or has_pool(terms):
        return heartbeat.observed
    query = (
        sa.select(servers.c.uuid)
        .join_from(servers, nodes, nodes.c.uuid == servers.c.node_uuid)
        .where(
            among(connection, servers.c.uuid, list(heartbeat.observed)),
            servers.c.deleted_at.is_(None),
            nodes.c.host != heartbeat.host,
            node_capabilities.is_pool(),
        )
    )
    reserved = set(connection.execute(query).scalars())
    return {uuid: seen_server for uuid, seen_server in heartbeat.observed.items() if uuid not in reserved}
