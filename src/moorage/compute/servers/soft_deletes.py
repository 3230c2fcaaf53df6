"""Soft deletes: a server that its user deletes is shut down, and kept for a while, in which it can come back.

When it goes for good is written down with the delete: it is an operation that is due later.
"""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.engine import Connection

from moorage.compute.imaging import discarding
from moorage.compute.moves import migrations
from moorage.compute.quotas import classes, usage
from moorage.compute.quotas.quotas import Limits
from moorage.compute.quotas.usage import QuotaHeadroom
from moorage.compute.servers import lifecycle, servers
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.lifecycle import ask_host, require_state
from moorage.compute.servers.lost_machines import LOST
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import TaskState, VmState
from moorage.core.clock import utcnow
from moorage.ledger import queue

_SECOND_CHANCE = 86_400
"""Seconds for which a server is kept that can't be restored, in a cloud that keeps none any more."""
_LEAVING = (TaskState.DELETING, TaskState.SOFT_DELETING)


def delete(connection: Connection, server: Server, origin: Origin, interval: int) -> None:
    """Softly, if there is an interval, and a machine to keep; one that is in mid-move is given up at once."""
    is_kept = server.vm_state == VmState.SOFT_DELETED and server.task_state is None
    if interval and (is_kept or server.task_state in _LEAVING):
        return
    nothing_to_keep = server.launched_at is None or server.host is None or server.request.get(LOST)
    if not interval or nothing_to_keep or migrations.active(connection, server.id) is not None:
        lifecycle.delete(connection, server, origin)
        return
    lifecycle.cut_short(connection, server)
    data = {"interval": interval}
    ask_host(connection, server, origin, "soft_delete", TaskState.SOFT_DELETING, data, action="delete")


def restore(
    connection: Connection, server: Server, origin: Origin, project: Limits, user: Limits, interval: int
) -> None:
    """As before, if its project still has room for it."""
    require_state(server, "restore", (VmState.SOFT_DELETED,))
    each = usage.of_one(server.flavor)
    further = classes.of_one(server.flavor, project)
    taken = usage.lock(connection, server.project_id) | classes.used(connection, server.project_id, further)
    QuotaHeadroom(project, taken).grant({**each, **further}, 1, 1)
    if user:
        used = usage.used_by(connection, server.project_id, server.user_id)
        QuotaHeadroom({**project, **user}, used).grant(each, 1, 1)
    servers.count_again(connection, server)
    discarding.cancel_all_else(connection, server)
    data = {"interval": interval or _SECOND_CHANCE}
    ask_host(connection, server, origin, "restore", TaskState.RESTORING, data)


def reclaim_later(connection: Connection, server: Server, interval: int) -> None:
    """It counts no longer; and goes for good in time, unless it is restored before: nobody has to ask."""
    usage.give_back(connection, [(server.project_id, server.flavor)])
    servers.update(connection, server.id, request={**server.request, usage.UNCOUNTED: True})
    queue.enqueue(connection, server.id, "delete", {}, due_at=utcnow() + timedelta(seconds=interval))
