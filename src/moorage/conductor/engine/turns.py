"""Turns: operations of one server that may be asked for side by side are done one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from moorage.compute.servers import servers
from moorage.conductor.engine.work import S, Work
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import operations

_LOOK_AGAIN_SECONDS = 0.3


def take(database: Database, batch: Sequence[Work[S]]) -> list[Work[S]]:
    """Those whose turn it is, with their servers as they are now; the others look again soon."""
    mine, earlier = operations.alias(), operations.alias()
    waiting = (
        sa.select(mine.c.id)
        .join_from(mine, earlier, (earlier.c.server_id == mine.c.server_id) & (earlier.c.id < mine.c.id))
        .where(earlier.c.finished_at.is_(None))
    )
    with database.read() as connection:
        ids = [work.operation.id for work in batch]
        early = set(connection.execute(waiting.where(among(connection, mine.c.id, ids))).scalars())
        # Only now: what the operation before this one wrote has to be seen.
        by_id = servers.by_id(connection, [work.server.id for work in batch])
    for work in batch:
        work.server = by_id[work.server.id]
        if work.operation.id in early:
            work.wait(work.operation.step, _LOOK_AGAIN_SECONDS)
    return [work for work in batch if work.operation.id not in early]
