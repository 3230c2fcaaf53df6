"""One more port or address for a server that is there, or one fewer.

As in `lifecycle.py`, each request checks the state, changes it and writes the operation, all in the caller's
transaction. Several may be asked for at once: they are done one after the other, in the order of asking.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError, NotFoundError
from moorage.compute.servers import actions, servers
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.lifecycle import require_state
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import ServerNotReady
from moorage.compute.servers.states import TaskState, VmState
from moorage.db.tables.compute import operations
from moorage.ledger import queue
from moorage.network.contract import AgreedNetworks, ServerPorts

ATTACH = "attach_interface"
DETACH = "detach_interface"
"""Kinds of operations, and the names of the actions."""
ADD_ADDRESS = "add_address"
REMOVE_ADDRESS = "remove_address"
"""Kinds of operations; nobody is told of them as actions."""
_KINDS = (ATTACH, DETACH, ADD_ADDRESS, REMOVE_ADDRESS)
_STATES = (VmState.ACTIVE, VmState.PAUSED, VmState.STOPPED)
_TASKS = (None, TaskState.ATTACHING_INTERFACE, TaskState.DETACHING_INTERFACE)


def require_ready(server: Server, action: str) -> None:
    require_state(server, action, _STATES, _TASKS)
    if server.host is None or server.node_uuid is None:
        raise ServerNotReady(server.uuid)


def attach(
    connection: Connection, server: Server, origin: Origin, agreed: AgreedNetworks, tag: str | None = None
) -> int:
    """A port of what was agreed to, which is one network or one port; the operation's id."""
    require_ready(server, ATTACH)
    action_id = actions.start(connection, server.id, ATTACH, origin)
    servers.set_state(connection, server.id, task_state=TaskState.ATTACHING_INTERFACE)
    data = {"networks": agreed.networks, "tag": tag}
    return queue.enqueue(connection, server.id, ATTACH, data, action_id)


def detach(connection: Connection, server: Server, origin: Origin, port_id: str) -> None:
    require_ready(server, DETACH)
    if port_id not in {port.id for port in server_ports_of(server).ports}:
        raise NotFoundError(f"Port id {port_id} could not be found.")
    action_id = actions.start(connection, server.id, DETACH, origin)
    servers.set_state(connection, server.id, task_state=TaskState.DETACHING_INTERFACE)
    queue.enqueue(connection, server.id, DETACH, {"port": port_id}, action_id)


def add_address(connection: Connection, server: Server, network_id: str) -> None:
    """For a port that the server has on this network."""
    require_ready(server, "add_fixed_ip")
    if network_id not in {port.network_id for port in server_ports_of(server).ports}:
        raise ComputeError(f"Network {network_id} could not be found for instance {server.uuid}.")
    servers.set_state(connection, server.id, task_state=TaskState.ATTACHING_INTERFACE)
    queue.enqueue(connection, server.id, ADD_ADDRESS, {"network": network_id})


def remove_address(connection: Connection, server: Server, address: str) -> None:
    require_ready(server, "remove_fixed_ip")
    if address not in {one for port in server_ports_of(server).ports for one in port.addresses}:
        raise ComputeError(f"Fixed IP {address} could not be found for instance {server.uuid}.")
    servers.set_state(connection, server.id, task_state=TaskState.DETACHING_INTERFACE)
    queue.enqueue(connection, server.id, REMOVE_ADDRESS, {"address": address})


def lose(connection: Connection, server_id: int, port_ids: Collection[str]) -> None:
    """These ports are gone from the network; the server, at rest and on a host, shall lose them, too."""
    servers.set_state(connection, server_id, task_state=TaskState.DETACHING_INTERFACE)
    for port_id in port_ids:
        queue.enqueue(connection, server_id, DETACH, {"port": port_id, "gone": True})


def can_lose(server: Server) -> bool:
    """Whether its host can be asked to take a port from the server just now."""
    return server.vm_state in _STATES and server.task_state is None and server.host is not None


def rest(connection: Connection, server_id: int, operation_id: int) -> None:
    """This operation is over; the server is at rest if no other one waits for its turn."""
    others = sa.select(operations.c.id).where(
        operations.c.server_id == server_id,
        operations.c.id != operation_id,
        operations.c.finished_at.is_(None),
        operations.c.kind.in_(_KINDS),
    )
    if connection.execute(others).first() is None:
        servers.set_state(connection, server_id, task_state=None)


@dataclass(frozen=True)
class AttachmentOutcome:
    """What became of an attachment: the port, or why there is none."""

    port_id: str | None = None
    error: str | None = None
    fault: str | None = None
    """What the network had against it; None if it was not the network."""
    cancelled: bool = False


def outcome(connection: Connection, operation_id: int) -> AttachmentOutcome | None:
    """None as long as it is under way."""
    query = sa.select(
        operations.c.finished_at, operations.c.outcome, operations.c.error, operations.c.data
    ).where(operations.c.id == operation_id)
    row = connection.execute(query).one()
    if row.finished_at is None:
        return None
    return AttachmentOutcome(
        row.data.get("port"), row.error, row.data.get("fault"), cancelled=row.outcome == "cancelled"
    )


def server_ports_of(server: Server) -> ServerPorts:
    return ServerPorts.of(server.uuid, server.request)
