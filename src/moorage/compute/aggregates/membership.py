"""Which providers belong into which placement aggregates, as our hosts, nodes and aggregates say."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among
from moorage.db.tables.aggregates import aggregate_hosts, aggregates, deleted_aggregates, unmirrored_nodes
from moorage.db.tables.compute import IS_PLACE, nodes
from moorage.scheduler import own_aggregate

NOWHERE: frozenset[str] = frozenset()


@dataclass(frozen=True)
class DesiredMemberships:
    """What Placement should say of some providers, or of all."""

    aggregates: frozenset[str]
    """The UUIDs of all aggregates that there are."""
    deleted: frozenset[str]
    """Those of aggregates that there were, and that providers may still be in."""
    hosts: Mapping[str, str]
    """The host of each node."""
    of_host: Mapping[str, frozenset[str]]
    """The aggregates of each host that is in any."""
    left: frozenset[str]
    """Nodes that no host has any more."""
    own: Mapping[str, str]
    """The own aggregate of its host, for each node that should be in it."""
    untold: frozenset[str]
    """Of those, the nodes that we don't know to be in it."""

    def of_node(self, uuid: str) -> frozenset[str]:
        host = self.hosts.get(uuid)
        shared = NOWHERE if host is None else self.of_host.get(host, NOWHERE)
        return shared | {self.own[uuid]} if uuid in self.own else shared

    def target(self, uuid: str, held: frozenset[str]) -> frozenset[str]:
        """What the aggregates of a provider should become.

        A provider that is no node of ours may be in our aggregates because somebody shares its resources with
        them: only aggregates that are gone are taken from it. Aggregates of others stay whatever it is.
        """
        if uuid in self.hosts or uuid in self.left:
            others = {each for each in held if not own_aggregate.is_own(each)}
            return self.of_node(uuid) | (others - self.aggregates - self.deleted)
        return held - self.deleted


def wanted(connection: Connection, node_uuids: Collection[str] | None = None) -> DesiredMemberships:
    """Of these nodes, or of all; needs a snapshot."""
    found = sa.select(nodes.c.uuid, nodes.c.name, nodes.c.host, nodes.c.mirrored_host).where(IS_PLACE)
    waiting = sa.select(unmirrored_nodes.c.uuid)
    gone = frozenset(connection.execute(sa.select(deleted_aggregates.c.uuid)).scalars())
    if node_uuids is not None:
        found = found.where(among(connection, nodes.c.uuid, node_uuids))
        waiting = waiting.where(among(connection, unmirrored_nodes.c.uuid, node_uuids))
    rows = connection.execute(found).all()
    hosts = {row.uuid: row.host for row in rows}
    many = [row for row in rows if _has_many(row.name, row.host)]
    return DesiredMemberships(
        aggregates=frozenset(connection.execute(sa.select(aggregates.c.uuid)).scalars()),
        deleted=gone,
        hosts=hosts,
        of_host=_of_hosts(connection, None if node_uuids is None else set(hosts.values())),
        left=frozenset(connection.execute(waiting).scalars()) - hosts.keys() - gone,
        own={row.uuid: own_aggregate.of_host(row.host) for row in many},
        untold=frozenset(row.uuid for row in many if row.mirrored_host != row.host),
    )


def _has_many(name: str, host: str) -> bool:
    """Whether the host of this node may have others: a host that has one only gives it its own name."""
    return host not in ("", name)


def note_own(connection: Connection, uuids: Collection[str], told: DesiredMemberships) -> None:
    """Placement has these in the own aggregates of the hosts that they had when it was told."""
    by_host: dict[str, list[str]] = {}
    for uuid in told.untold.intersection(uuids):
        by_host.setdefault(told.hosts[uuid], []).append(uuid)
    for host, theirs in sorted(by_host.items()):
        still = sa.and_(among(connection, nodes.c.uuid, theirs), nodes.c.host == host)
        # in one order for all, so that none wait for each other
        connection.execute(sa.select(nodes.c.id).where(still).order_by(nodes.c.uuid).with_for_update())
        connection.execute(sa.update(nodes).where(still).values(mirrored_host=host))


def _of_hosts(connection: Connection, hosts: Collection[str] | None) -> dict[str, frozenset[str]]:
    query = sa.select(aggregate_hosts.c.host, aggregates.c.uuid).join_from(aggregate_hosts, aggregates)
    if hosts is not None:
        query = query.where(among(connection, aggregate_hosts.c.host, hosts))
    found: dict[str, set[str]] = {}
    for host, uuid in connection.execute(query):
        found.setdefault(host, set()).add(uuid)
    return {host: frozenset(uuids) for host, uuids in found.items()}


def forget_deleted(connection: Connection, uuids: Collection[str], before: datetime) -> None:
    """Aggregates that no provider is in, and that went so long ago that nobody adds one any more."""
    connection.execute(
        sa.delete(deleted_aggregates).where(
            among(connection, deleted_aggregates.c.uuid, uuids), deleted_aggregates.c.deleted_at < before
        )
    )
