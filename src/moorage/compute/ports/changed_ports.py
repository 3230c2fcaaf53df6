"""Changed ports: what the network service told of servers, until a conductor has looked at it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.servers.server import COLUMNS, Server, from_row
from moorage.core.clock import utcnow
from moorage.db.among import among
from moorage.db.tables.compute import operations, servers
from moorage.db.tables.network import changed_ports
from moorage.db.upsert import upsert

_AT_ONCE = 200


def note(connection: Connection, server_uuids: Collection[str]) -> None:
    """Something changed: a later word counts, since what was looked at before may be old."""
    now = utcnow()
    rows = [{"server_uuid": uuid, "since": now} for uuid in sorted(server_uuids)]
    if rows:
        connection.execute(upsert(connection, changed_ports, ["server_uuid"], renewed=["since"]), rows)


def of_servers_at_rest(connection: Connection) -> dict[str, datetime]:
    """Servers that nobody works on (who does, looks for themselves), and since when they have changed."""
    busy = sa.exists().where(operations.c.server_id == servers.c.id, operations.c.finished_at.is_(None))
    query = (
        sa.select(changed_ports.c.server_uuid, changed_ports.c.since)
        .outerjoin(servers, servers.c.uuid == changed_ports.c.server_uuid)
        .where(~busy)
        .order_by(changed_ports.c.since)
        .limit(_AT_ONCE)
    )
    return {row.server_uuid: row.since for row in connection.execute(query)}


def forget(connection: Connection, looked_at: Mapping[str, datetime]) -> None:
    """Those that have not changed again meanwhile."""
    for uuid, since in looked_at.items():
        connection.execute(
            sa.delete(changed_ports).where(
                changed_ports.c.server_uuid == uuid, changed_ports.c.since <= since
            )
        )


def servers_among(connection: Connection, server_uuids: Collection[str]) -> list[Server]:
    """Those of them that exist."""
    query = sa.select(*COLUMNS).where(
        among(connection, servers.c.uuid, server_uuids), servers.c.deleted_at.is_(None)
    )
    return [from_row(row) for row in connection.execute(query)]
