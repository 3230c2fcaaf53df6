"""External events: what another service has seen happen to a server, and what follows from it here.

An event that nothing waits for is taken and forgotten, as in the reference. That holds for all events of
volumes so far: what comes to wait for one gets a line in the table below. What is told of ports is looked at
by conductors, in the network itself: see `changed_ports.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy.engine import Connection

from moorage.compute.servers import actions, servers
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import PowerNumber, TaskState, VmState
from moorage.ledger import queue

PLUGGED = "plugged"
"""The step of an operation that waits for ports: an event wakes it."""

Handler = Callable[[Connection, Server, str, Origin], None]
"""Takes the server, under lock, and the event's tag."""


def power_update(connection: Connection, server: Server, tag: str, origin: Origin) -> None:
    """Look at the machine, if what was seen would change what we think; the action is shown in any case.

    A tag that is neither on nor off is passed over.
    """
    if tag == "POWER_ON":
        action, kind, task_state = "start", "powered_on", TaskState.POWERING_ON
        expected = (VmState.STOPPED, PowerNumber.SHUT_DOWN)
    elif tag == "POWER_OFF":
        action, kind, task_state = "stop", "powered_off", TaskState.POWERING_OFF
        expected = (VmState.ACTIVE, PowerNumber.RUNNING)
    else:
        return
    action_id = actions.start(connection, server.id, action, origin)
    if server.task_state is not None or (server.vm_state, server.power_state) != expected:
        actions.finish(connection, {action_id: None})
        return
    servers.set_state(connection, server.id, task_state=task_state)
    queue.enqueue(connection, server.id, kind, {}, action_id)


HANDLERS: Mapping[str, Handler] = {"power-update": power_update}
"""By the event's name."""
