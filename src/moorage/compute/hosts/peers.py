"""Peers: hosts that serve the same partition of nodes, as the facts of their services say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import liveness
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.db.tables.compute import services
from moorage.drivers.served_nodes import UNNAMED
from moorage.drivers.shared_nodes import has_pool, keeps_pools

TERMS = "partition"
"""Where the facts of a service say which nodes it shares with its peers."""
FAILOVER = "failover_servers"
"""Likewise, whether it takes over servers of peers that are down."""
_PARTITION = ("key", UNNAMED, "shard")
_ALIKE = (*_PARTITION, "selection", "shared")
"""What peers have in common."""


def living(connection: Connection, terms: Mapping[str, Any], down_after: timedelta) -> set[str]:
    """The hosts that are up and serve the same nodes, whomever they want to share them with."""
    query = sa.select(services.c.host, services.c.facts).where(
        services.c.binary == AGENT_BINARY, liveness.is_up(down_after)
    )
    return {host for host, facts in connection.execute(query) if same(facts.get(TERMS), terms)}


def has_live_peer(connection: Connection, host: str, down_after: timedelta) -> bool:
    """Whether some other host that lives will get the nodes of this one, and their servers, if it is down."""
    query = sa.select(services.c.host, services.c.facts).where(services.c.binary == AGENT_BINARY)
    left = connection.execute(query.where(services.c.host == host)).one_or_none()
    if left is None or TERMS not in left.facts:
        return False
    others = connection.execute(query.where(services.c.host != host, liveness.is_up(down_after)))
    return any(
        _inherits(facts.get(TERMS), left.facts[TERMS]) and facts.get(FAILOVER, True) for _, facts in others
    )


def _inherits(one: Mapping[str, Any] | None, left: Mapping[str, Any]) -> bool:
    """Whether a host with these terms gets what one with those leaves: a pool, or its nodes."""
    if one is not None and has_pool(left):
        return keeps_pools(one) and same_partition(one, left)
    return same(one, left)


def same_partition(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> bool:
    """Whether two hosts serve the same nodes, though maybe not in the same way."""
    return one is not None and all(one.get(name) == other.get(name) for name in _PARTITION)


def same(one: Mapping[str, Any] | None, other: Mapping[str, Any]) -> bool:
    """Whether two hosts serve the same nodes."""
    return one is not None and all(one.get(name) == other.get(name) for name in _ALIKE)
