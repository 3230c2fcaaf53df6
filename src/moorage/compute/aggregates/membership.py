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

    def of_node(self, uuid: str) -> frozenset[str]:
        host = self.hosts.get(uuid)
        return NOWHERE if host is None else self.of_host.get(host, NOWHERE)

    def target(self, uuid: str, held: frozenset[str]) -> frozenset[str]:
        """What the aggregates of a provider should become.

        A provider that is no node of ours may be in our aggregates because somebody shares its resources with
        them: only aggregates that are gone are taken from it. Aggregates of others stay whatever it is.
        """
        if uuid in self.hosts or uuid in self.left:
            return (held - self.aggregates - self.deleted) | self.of_node(uuid)
        return held - self.deleted


def wanted(connection: Connection, node_uuids: Collection[str] | None = None) -> DesiredMemberships:
    """Of these nodes, or of all; needs a snapshot."""
    found = sa.select(nodes.c.uuid, nodes.c.host).where(IS_PLACE)
    waiting = sa.select(unmirrored_nodes.c.uuid)
    gone = frozenset(connection.execute(sa.select(deleted_aggregates.c.uuid)).scalars())
    if node_uuids is not None:
        found = found.where(among(connection, nodes.c.uuid, node_uuids))
        waiting = waiting.where(among(connection, unmirrored_nodes.c.uuid, node_uuids))
    hosts: dict[str, str] = dict(connection.execute(found).all())
    return DesiredMemberships(
        aggregates=frozenset(connection.execute(sa.select(aggregates.c.uuid)).scalars()),
        deleted=gone,
        hosts=hosts,
        of_host=_of_hosts(connection, None if node_uuids is None else set(hosts.values())),
        left=frozenset(connection.execute(waiting).scalars()) - hosts.keys() - gone,
    )


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
