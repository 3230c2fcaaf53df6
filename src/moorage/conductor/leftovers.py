"""Machines that hosts hold for servers which are not there: what is left of orders that came too late.

A server that we don't know at all is not ours to judge: it may be another cloud's, or our books may be older
than it.
"""

from __future__ import annotations

import logging

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.bus.contract import SWEEP, Doubt, Heartbeat, Task
from moorage.db.among import among
from moorage.db.tables.compute import operations, servers

LOG = logging.getLogger(__name__)

LEFT = Counter("moorage_conductor_leftovers_total", "Machines found that are held for servers not there.")


def orders(connection: Connection, heartbeat: Heartbeat) -> list[Task]:
    """Tell a host which of the machines that it asks about nobody needs."""
    doubts = heartbeat.doubts
    if not doubts:
        return []
    query = sa.select(servers.c.uuid, servers.c.host, servers.c.node_uuid, servers.c.deleted_at).where(
        among(connection, servers.c.uuid, sorted({doubt.server_uuid for doubt in doubts})), ~_under_way()
    )
    settled = {row.uuid: row for row in connection.execute(query)}
    left = [
        doubt
        for doubt in doubts
        if doubt.server_uuid in settled and not _is_right(doubt, heartbeat.host, settled[doubt.server_uuid])
    ]
    if not left:
        return []
    LEFT.inc(len(left))
    named = ", ".join(sorted({doubt.server_uuid for doubt in left})[:5])
    LOG.warning(
        "host %s holds %d machines for servers that are not there: %s", heartbeat.host, len(left), named
    )
    return [Task(0, "", SWEEP, 0, "", {"held": msgspec.to_builtins(left)})]


def _is_right(doubt: Doubt, host: str, server: sa.Row[tuple[str, str, str, object]]) -> bool:
    there = server.deleted_at is None and server.node_uuid == doubt.node_uuid
    return there and server.host == host


def _under_way() -> sa.ColumnElement[bool]:
    """Whatever is being done to a server may be what the machine is for."""
    return sa.exists().where(operations.c.server_id == servers.c.id, operations.c.finished_at.is_(None))
