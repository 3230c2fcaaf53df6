"""Build failures: how many builds in a row a node has failed, so that others come first.

A build that goes well ends the row, and so does a restart of the agent: who restarts it has mended the host.
That mends no machine of a bare-metal host: what failed there counts until its operators forgive it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import machine_failures
from moorage.compute.hosts.registry import AGENT_BINARY
from moorage.db.among import one_of
from moorage.db.tables.compute import nodes, services

_ADD = (
    sa.update(nodes)
    .where(nodes.c.uuid == sa.bindparam("node"))
    .values(build_failures=nodes.c.build_failures + sa.bindparam("more"))
)
_END = sa.update(nodes).where(one_of(nodes.c.uuid, "uuids"), nodes.c.build_failures > 0)


def add(connection: Connection, node_uuids: Sequence[str]) -> None:
    """One failure for each time that a node is named."""
    counts = sorted(Counter(node_uuids).items())
    connection.execute(_ADD, [{"node": uuid, "more": count} for uuid, count in counts])


def end(connection: Connection, node_uuids: Sequence[str]) -> None:
    """These nodes have made a server run."""
    connection.execute(_END.values(build_failures=0), {"uuids": sorted(set(node_uuids))})


def forgive_restarted(connection: Connection, host: str, facts: Mapping[str, Any]) -> None:
    """Called before what the agent says of itself is written down: did it say so before?"""
    query = sa.select(services.c.facts).where(services.c.host == host, services.c.binary == AGENT_BINARY)
    before = connection.execute(query).scalar_one_or_none()
    if before is not None and before.get("started_at") != facts.get("started_at"):
        failing = sa.update(nodes).where(
            nodes.c.host == host, nodes.c.build_failures > 0, ~machine_failures.has_failed(nodes.c.uuid)
        )
        connection.execute(failing.values(build_failures=0))
