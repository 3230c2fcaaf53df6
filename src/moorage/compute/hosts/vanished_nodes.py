"""Nodes that don't exist any more, but carry servers: their records go with these."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.hosts import backlog
from moorage.compute.hosts.backlog import BacklogKind
from moorage.db.among import among, one_of
from moorage.db.tables.compute import nodes, servers

VANISHED = "vanished"
"""In the facts of a node. Should it come back, its owner tells its facts anew, without this."""
_GONE = "its node is gone"


def remove_providers(connection: Connection, node_uuids: Collection[str]) -> None:
    """Soon, and again and again until Placement has done it; and once more, since a report of the node that
    was delayed would make the provider anew."""
    backlog.add(connection, BacklogKind.PROVIDER, node_uuids, timedelta(0), _GONE)


_CARRIES = sa.exists().where(servers.c.node_uuid == nodes.c.uuid, servers.c.deleted_at.is_(None))
_FORGET = (
    sa.delete(nodes)
    .where(
        nodes.c.uuid.in_(sa.select(servers.c.node_uuid).where(one_of(servers.c.id, "ids"))),
        nodes.c.facts[VANISHED].as_boolean().is_(True),
        ~_CARRIES,
    )
    .returning(nodes.c.uuid)
)


def forget_after(connection: Connection, server_ids: Sequence[int]) -> None:
    """The servers are deleted, which may have been the last ones on nodes that are gone."""
    remove_providers(connection, connection.execute(_FORGET, {"ids": server_ids}).scalars().all())


def mark(connection: Connection, node_uuids: Collection[str]) -> None:
    if not node_uuids:
        return
    query = sa.select(nodes.c.uuid, nodes.c.facts).where(among(connection, nodes.c.uuid, node_uuids))
    for uuid, facts in connection.execute(query).all():
        marked = {**facts, VANISHED: True}
        connection.execute(sa.update(nodes).where(nodes.c.uuid == uuid).values(facts=marked))
