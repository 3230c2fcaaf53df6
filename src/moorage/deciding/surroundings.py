"""Surroundings: what requests of servers refer to, looked up for a whole batch at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import node_capabilities
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import (
    IS_PLACE,
    UNMIRRORED,
    nodes,
    server_group_members,
    server_groups,
    servers,
)
from moorage.scheduler import hints
from moorage.scheduler.request import MOST_TREES, TargetNodes
from moorage.scheduler.server_group import ServerGroupPolicy, ServerGroupState

Target = tuple[str | None, str | None]
"""A host and a node, by their names."""


@dataclass(slots=True)
class Surroundings:
    groups: Mapping[str, ServerGroupState] = field(default_factory=dict)
    node_of: Mapping[str, str] = field(default_factory=dict)
    """The nodes of other servers that requests name."""
    targets: Mapping[Target, TargetNodes] = field(default_factory=dict)
    """The nodes that requests ask for."""
    machines: Mapping[str, str] = field(default_factory=dict)
    """The nodes that hints name, by what they call them."""
    pools: tuple[str, ...] = ()
    """If a hint names a machine that is no node: the nodes that may have it all the same."""

    def may_be_on(self, machines: Iterable[str]) -> frozenset[str]:
        """The nodes by which a server gets one of these machines."""
        found = [self.machines.get(machine) for machine in machines]
        return frozenset(filter(None, found)) | (frozenset(self.pools) if None in found else frozenset())


def look_up(database: Database, asked: Iterable[Mapping[str, Any]]) -> Surroundings:
    """What these requests (as servers keep them) name: server groups, other servers, nodes."""
    asked = list(asked)
    group_uuids = {request["group"] for request in asked if request.get("group")}
    neighbours = {
        uuid
        for request in asked
        for key in (hints.SAME, hints.DIFFERENT)
        for uuid in hints.named(request.get("scheduler_hints") or {}, key)
    }
    targets = {target_of(request) for request in asked} - {(None, None)}
    machines = {name for request in asked for name in machines_of(request)}
    found = Surroundings()
    if not (group_uuids or neighbours or targets or machines):
        return found
    with database.read() as connection:
        if group_uuids:
            found.groups = _server_groups(connection, group_uuids)
        if neighbours:
            query = sa.select(servers.c.uuid, servers.c.node_uuid).where(
                among(connection, servers.c.uuid, neighbours), servers.c.node_uuid.is_not(None)
            )
            found.node_of = dict(connection.execute(query).all())
        found.targets = {target: _nodes_of(connection, target) for target in targets}
        if machines:
            found.machines = _machines(connection, machines)
            found.pools = _pools(connection) if machines - found.machines.keys() else ()
    return found


def target_of(asked: Mapping[str, Any]) -> Target:
    """The host and the node that a request names."""
    return asked.get("host") or None, asked.get("node") or None


def machines_of(asked: Mapping[str, Any]) -> list[str]:
    """What a request's hint calls the machines that will do."""
    return hints.named(asked.get("scheduler_hints") or {}, hints.MACHINE)


def _machines(connection: Connection, names: set[str]) -> dict[str, str]:
    """By the names of nodes, which an index has; else by those that Ironic has for them."""
    by_name = sa.select(nodes.c.name, nodes.c.uuid).where(IS_PLACE, among(connection, nodes.c.name, names))
    found: dict[str, str] = dict(connection.execute(by_name).all())
    left = names - found.keys()
    if left:
        called = nodes.c.facts["ironic_name"].as_string()
        query = sa.select(called, nodes.c.uuid).where(IS_PLACE, among(connection, called, left))
        found |= dict(connection.execute(query).all())
    return found


def _pools(connection: Connection) -> tuple[str, ...]:
    """Those that offer anything: one that a peer looks after does not."""
    query = sa.select(nodes.c.uuid).where(nodes.c.name == nodes.c.host, node_capabilities.is_pool())
    return tuple(connection.execute(query).scalars())


def _nodes_of(connection: Connection, target: Target) -> TargetNodes:
    """Those with the fewest servers first, and no more than will be asked for.

    Of a host that may have thousands, those are asked for together that Placement knows to be this host's;
    only what it has not been told yet is left to be named.
    """
    host, node = target
    alive = sa.and_(servers.c.node_uuid == nodes.c.uuid, servers.c.deleted_at.is_(None))
    here = sa.select(sa.func.count()).where(alive).scalar_subquery()
    query = sa.select(nodes.c.uuid).where(IS_PLACE).order_by(here, nodes.c.name).limit(MOST_TREES)
    if host is not None:
        query = query.where(nodes.c.host == host)
    if node is not None:
        found = connection.execute(query.where(nodes.c.name == node)).scalars().all()
        if not found and host is not None:  # it may be a machine of the host's pool
            pool = query.where(nodes.c.name == host, node_capabilities.is_pool())
            found = connection.execute(pool).scalars().all()
        return TargetNodes(tuple(found))
    mirrored = sa.select(nodes.c.uuid).where(nodes.c.host == host, nodes.c.mirrored_host == host).limit(1)
    return TargetNodes(
        each=tuple(connection.execute(query.where(UNMIRRORED)).scalars()),
        together=connection.execute(mirrored).scalar_one_or_none(),
    )


def _server_groups(connection: Connection, uuids: set[str]) -> dict[str, ServerGroupState]:
    query = sa.select(server_groups).where(among(connection, server_groups.c.uuid, uuids))
    found = {}
    for row in connection.execute(query):
        members = (
            sa.select(servers.c.node_uuid, sa.func.count())
            .join_from(server_group_members, servers, server_group_members.c.server_id == servers.c.id)
            .where(
                server_group_members.c.group_id == row.id,
                servers.c.node_uuid.is_not(None),
                servers.c.deleted_at.is_(None),
            )
            .group_by(servers.c.node_uuid)
        )
        found[row.uuid] = ServerGroupState(
            row.uuid,
            ServerGroupPolicy(row.policy),
            int(row.rules.get("max_server_per_host", 1)),
            dict(connection.execute(members).all()),
        )
    return found
