"""What the projects' servers have of a host."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.tables.compute import servers


@dataclass(frozen=True)
class HostUsage:
    project: str
    vcpus: int
    memory_mb: int
    disk_gb: int


def by_project(connection: Connection, host: str) -> list[HostUsage]:
    """The sums of the flavors of each project's servers there."""
    flavor = servers.c.flavor
    query = (
        sa.select(
            servers.c.project_id,
            sa.func.sum(flavor["vcpus"].as_integer()),
            sa.func.sum(flavor["ram"].as_integer()),
            sa.func.sum(flavor["disk"].as_integer() + flavor["ephemeral"].as_integer()),
        )
        .where(servers.c.host == host, servers.c.deleted_at.is_(None))
        .group_by(servers.c.project_id)
        .order_by(servers.c.project_id)
    )
    return [HostUsage(row[0], int(row[1]), int(row[2]), int(row[3])) for row in connection.execute(query)]
