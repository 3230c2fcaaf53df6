"""Machines that hosts hold for servers which are not there: what delayed calls have left behind.

A server that we don't know at all is not ours to judge: it may be another cloud's, or our database may be
older than it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.bus.contract import SWEEP, Heartbeat, HeldMachine, Task
from moorage.db.among import among
from moorage.db.tables.compute import operations, servers

LOG = logging.getLogger(__name__)

LEFT = Counter("moorage_conductor_leftovers_total", "Machines found that are held for servers not there.")


def orders(connection: Connection, heartbeat: Heartbeat) -> list[Task]:
    """Tell a host which of the machines that it asks about nobody needs."""
    found = left(connection, heartbeat.held_machines)
    if not found:
        return []
    LEFT.inc(len(found))
    named = ", ".join(sorted({machine.server_uuid for machine in found})[:5])
    LOG.warning("host %s holds %d machines for servers not there: %s", heartbeat.host, len(found), named)
    return [Task(0, "", SWEEP, 0, "", {"held": msgspec.to_builtins(found)})]


def left(connection: Connection, held: Sequence[HeldMachine]) -> list[HeldMachine]:
    """Those of the machines that are held for a server which is not there."""
    if not held:
        return []
    query = sa.select(servers.c.uuid, servers.c.node_uuid, servers.c.deleted_at).where(
        among(connection, servers.c.uuid, sorted({machine.server_uuid for machine in held})), ~_under_way()
    )
    nodes = {uuid: None if deleted else node for uuid, node, deleted in connection.execute(query)}
    # Which host looks after the node is no matter: one that has lost it may not have heard of it yet.
    return [
        machine for machine in held if nodes.get(machine.server_uuid, machine.node_uuid) != machine.node_uuid
    ]


def _under_way() -> sa.ColumnElement[bool]:
    """Whatever is being done to a server may be what the machine is for."""
    return sa.exists().where(operations.c.server_id == servers.c.id, operations.c.finished_at.is_(None))
