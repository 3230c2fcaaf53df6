"""Snapshots: what is on a server's disk becomes an image, for its user or as one of several backups.

The operation comes first, then, once that is written down, the record of the image, made as whoever asks. So
no record is ever without somebody who looks after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.imaging.discarding import IMAGING
from moorage.compute.servers import actions, servers
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.lifecycle import require_state
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServerNotReady
from moorage.compute.servers.states import TaskState, VmState
from moorage.core.clock import utcnow
from moorage.ledger import queue

SNAPPABLE = (VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED)
PATIENCE = timedelta(minutes=2)
"""For whoever makes the record of the image; longer than Glance is waited for."""


@dataclass(frozen=True)
class BackupPlan:
    backup_type: str
    rotation: int


def snapshot(connection: Connection, server: Server, origin: Origin, image_id: str) -> None:
    require_state(server, "createImage", SNAPPABLE)
    begin(connection, server, origin, "createImage", "snapshot", TaskState.IMAGE_SNAPSHOT_PENDING, image_id)


def backup(connection: Connection, server: Server, origin: Origin, image_id: str, plan: BackupPlan) -> None:
    require_state(server, "createBackup", SNAPPABLE)
    more = {"backup_type": plan.backup_type, "rotation": plan.rotation}
    task_state = TaskState.IMAGE_BACKUP
    begin(connection, server, origin, "createBackup", "backup", task_state, image_id, more)


def begin(
    connection: Connection,
    server: Server,
    origin: Origin,
    action: str,
    kind: str,
    task_state: TaskState,
    image_id: str,
    more: Mapping[str, Any] | None = None,
) -> None:
    if server.host is None:
        raise ServerNotReady(server.uuid)
    action_id = actions.start(connection, server.id, action, origin)
    servers.set_state(connection, server.id, task_state=task_state)
    data = {"image_id": image_id, **(more or {})}
    queue.enqueue(connection, server.id, kind, data, action_id, due_at=utcnow() + PATIENCE)


def go_on(connection: Connection, server: Server) -> None:
    """The record is made."""
    queue.nudge(connection, server.id)


def withdraw(connection: Connection, server: Server, why: str) -> None:
    """The record was not made, as far as one can know: a conductor sees to that, and ends the operation."""
    queue.revise(connection, server.id, IMAGING, {"withdrawn": why})
