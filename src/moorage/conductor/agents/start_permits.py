"""Whether an agent may make a server run that it was told to: it asks right before, since it may be late.

Who is permitted to has just been heard: the same transaction wrote that down. So nobody takes its host for
dead, and starts the server elsewhere, before the permit has ended.
"""

from __future__ import annotations

import logging
from typing import Any

import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.bus.contract import PERMIT, Heartbeat, StartRequest, Task
from moorage.compute.hosts.registry import RegistryEntry
from moorage.compute.moves.move import TASKS
from moorage.db.among import among
from moorage.db.tables.compute import operations, servers

LOG = logging.getLogger(__name__)

REFUSED = Counter("moorage_conductor_starts_refused_total", "Late tasks that would have made a server run.")


def orders(
    connection: Connection, heartbeat: Heartbeat, entry: RegistryEntry, down_time: float
) -> list[Task]:
    """The answer. A host that an operator has declared dead gets none: its servers may be elsewhere."""
    asked = heartbeat.starts
    if asked is None or not asked.starts or entry.forced_down:
        return []
    known = _operations(connection, {start.operation_id for start in asked.starts})
    verdicts = {start.server_uuid: _verdict(start, known, heartbeat.host) for start in asked.starts}
    refused = [uuid for uuid, verdict in verdicts.items() if verdict is False]
    if refused:
        REFUSED.inc(len(refused))
        LOG.info("host %s is late: it may not start %s", heartbeat.host, ", ".join(refused[:5]))
    payload = {
        "question": asked.number,
        "seconds": down_time,
        "granted": [uuid for uuid, verdict in verdicts.items() if verdict],
        "refused": refused,
    }
    return [Task(0, "", PERMIT, 0, "", payload)]


def _operations(connection: Connection, ids: set[int]) -> dict[int, Any]:
    """Locked against whoever is about to cut one short: he sees then that the host was heard."""
    query = (
        sa.select(
            operations.c.id, operations.c.attempt, operations.c.data, operations.c.finished_at, servers.c.host
        )
        .join_from(operations, servers, servers.c.id == operations.c.server_id)
        .where(among(connection, operations.c.id, sorted(ids)))
        .order_by(operations.c.id)
        .with_for_update(read=True, of=operations)
    )
    return {row.id: row for row in connection.execute(query)}


def _verdict(start: StartRequest, known: dict[int, Any], host: str) -> bool | None:
    """None if the conductor that sent the task has not written down yet that it did."""
    row = known.get(start.operation_id)
    if row is None or row.finished_at is not None or row.attempt > start.attempt:
        return False
    told = row.data.get(TASKS, {}).get(host) if "move" in row.data else row.attempt
    owner = host if "move" in row.data else row.host
    return True if (told, owner) == (start.attempt, host) else None
