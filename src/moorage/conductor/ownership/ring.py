"""Who owns which of the nodes that hosts share, partition by partition, and what hashing would make of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import liveness
from moorage.compute.hosts.peers import TERMS
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.conductor.ownership.ownership import NOBODY
from moorage.db.tables.compute import nodes, servers, services
from moorage.drivers.rendezvous import propose
from moorage.drivers.served_nodes import ServedNodes


@dataclass(frozen=True)
class OwnedNode:
    uuid: str
    name: str
    """As Ironic's operators call it."""
    host: str
    """Empty if nobody owns it."""
    epoch: int
    server: str | None
    """The server that it carries."""
    group: str
    shard: str


@dataclass(frozen=True)
class Member:
    host: str
    up: bool
    peers: tuple[str, ...]
    """If it names any, those with whom it shares."""


@dataclass(frozen=True)
class Ring:
    """The hosts that serve one partition, and the nodes in it."""

    served: ServedNodes
    members: tuple[Member, ...]
    nodes: tuple[OwnedNode, ...]

    @property
    def living(self) -> set[str]:
        return {member.host for member in self.members if member.up}

    def proposal(self, hosts: Collection[str]) -> dict[str, str]:
        """The owner of each node, by hashing alone, if these were the members."""
        if not hosts:
            return {}
        names = sorted(hosts)
        places = propose(names, [node.uuid for node in self.nodes]).tolist()
        return {node.uuid: names[place] for node, place in zip(self.nodes, places, strict=True)}

    def moves(self, hosts: Collection[str]) -> list[ProposedMove]:
        """What would change if these were the members; a node with a server stays if its host does."""
        proposed = self.proposal(hosts)
        found = (ProposedMove(node, proposed[node.uuid]) for node in self.nodes if node.uuid in proposed)
        return [
            move
            for move in found
            if move.to != move.node.host and (move.node.server is None or move.node.host not in hosts)
        ]


@dataclass(frozen=True)
class ProposedMove:
    node: OwnedNode
    to: str


def read(connection: Connection, down_after: timedelta) -> list[Ring]:
    """All partitions that a host serves, in their order; needs a snapshot."""
    members: dict[ServedNodes, list[Member]] = {}
    query = sa.select(services.c.host, services.c.facts, services.c.seen_at, services.c.forced_down)
    for host, facts, seen_at, forced_down in connection.execute(
        query.where(services.c.binary == AGENT_BINARY).order_by(services.c.host)
    ):
        terms = facts.get(TERMS)
        if terms is not None:
            up = not forced_down and liveness.was_heard(seen_at, down_after)
            member = Member(host, up, tuple(terms.get("peers", ())))
            members.setdefault(ServedNodes.read(terms), []).append(member)
    shared = _nodes(connection)
    return [
        Ring(served, tuple(found), tuple(node for node in shared if served.has(node.group, node.shard)))
        for served, found in sorted(members.items(), key=lambda one: (one[0].key or "", one[0].shard))
    ]


def _nodes(connection: Connection) -> list[OwnedNode]:
    carried = sa.and_(servers.c.node_uuid == nodes.c.uuid, servers.c.deleted_at.is_(None))
    query = (
        sa.select(nodes.c.uuid, nodes.c.host, nodes.c.epoch, nodes.c.facts, servers.c.uuid.label("server"))
        .outerjoin_from(nodes, servers, carried)
        .order_by(nodes.c.uuid)
    )
    return [
        _node(row.uuid, row.host, row.epoch, row.server, row.facts)
        for row in connection.execute(query)
        if "conductor_group" in row.facts
    ]


def _node(uuid: str, host: str, epoch: int, server: str | None, facts: dict[str, Any]) -> OwnedNode:
    return OwnedNode(
        uuid,
        facts.get("ironic_name", ""),
        host or NOBODY,
        epoch,
        server,
        facts.get("conductor_group", ""),
        facts.get("shard", ""),
    )
