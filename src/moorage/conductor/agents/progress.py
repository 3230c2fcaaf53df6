"""How far long work has come: users see it, and an operation that makes progress is not given up."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import among
from moorage.db.tables.compute import operations, servers


def follow(connection: Connection, host: str, progress: Mapping[str, int]) -> None:
    """Write down what changed; an agent that is at work owes no answer yet."""
    if not progress:
        return
    query = sa.select(servers.c.id, servers.c.uuid, servers.c.progress).where(
        among(connection, servers.c.uuid, list(progress)), servers.c.host == host
    )
    found = connection.execute(query).all()
    for row in found:
        if row.progress != progress[row.uuid]:
            statement = sa.update(servers).where(servers.c.id == row.id)
            connection.execute(statement.values(progress=progress[row.uuid]))
    connection.execute(
        sa.update(operations)
        .where(
            among(connection, operations.c.server_id, [row.id for row in found]),
            operations.c.finished_at.is_(None),
            operations.c.tries > 0,
        )
        .values(tries=0)
    )
