"""What a user may ask of a server.

Each request checks the state, changes it and writes the operation, all in the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.errors import ConflictError
from moorage.compute.imaging import discarding
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import Migration
from moorage.compute.moves.move import Move, MoveEnd
from moorage.compute.servers import actions, lost_machines, servers
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.server import Server
from moorage.compute.servers.server_errors import InvalidState, ServerLocked, ServerNotReady
from moorage.compute.servers.states import TaskState, VmState
from moorage.ledger import queue

OWNER = "owner"
ADMIN = "admin"
_REBOOTABLE = (VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED, VmState.ERROR)
_INTERRUPTIBLE = (
    None,
    TaskState.REBOOTING,
    TaskState.REBOOTING_HARD,
    TaskState.PAUSING,
    TaskState.UNPAUSING,
    TaskState.SUSPENDING,
    TaskState.RESUMING,
)
"""What a hard reboot cuts short."""


def require_unlocked(server: Server, *, as_admin: bool) -> None:
    """A locked server is changed by administrators only."""
    if server.locked_by is not None and not as_admin:
        raise ServerLocked(server.uuid)


def require_state(
    server: Server,
    action: str,
    vm_states: Collection[str] | None,
    task_states: Collection[str | None] | None = (None,),
    *,
    launched: bool = True,
) -> None:
    """The API's rules: None allows any state; `launched` wants a server that has run before."""
    lost_machines.require_machine(server)
    if vm_states is not None and server.vm_state not in vm_states:
        raise InvalidState(action, server.uuid, "vm_state", server.vm_state)
    if task_states is not None and server.task_state not in task_states:
        raise InvalidState(action, server.uuid, "task_state", server.task_state)
    if launched and server.launched_at is None:
        raise InvalidState(action, server.uuid, "launched_at", None)


def delete(connection: Connection, server: Server, origin: Origin) -> None:
    """Whatever is going on with the server ends here. Asked again, nothing more happens."""
    if server.task_state == TaskState.DELETING:
        return
    action_id = actions.start(connection, server.id, "delete", origin)
    cut_short(connection, server)
    servers.set_state(connection, server.id, task_state=TaskState.DELETING, progress=0)
    discarding.discard_shelved(connection, server)
    queue.enqueue(connection, server.id, "delete", {}, action_id)


def cut_short(connection: Connection, server: Server) -> None:
    """Whatever is going on with the server ends here; an image that was being made of it goes."""
    unfinished = discarding.unfinished(connection, server)
    discarding.cancel_all_else(connection, server)
    for image_id, even_whole in unfinished:
        discarding.discard(connection, server, image_id, even_whole=even_whole)


def start(connection: Connection, server: Server, origin: Origin) -> None:
    require_state(server, "start", (VmState.STOPPED,))
    ask_host(connection, server, origin, "start", TaskState.POWERING_ON)


def stop(connection: Connection, server: Server, origin: Origin) -> None:
    require_state(server, "stop", (VmState.ACTIVE, VmState.ERROR))
    ask_host(connection, server, origin, "stop", TaskState.POWERING_OFF)


def pause(connection: Connection, server: Server, origin: Origin) -> None:
    require_state(server, "pause", (VmState.ACTIVE,))
    ask_host(connection, server, origin, "pause", TaskState.PAUSING)


def unpause(connection: Connection, server: Server, origin: Origin) -> None:
    require_state(server, "unpause", (VmState.PAUSED,))
    ask_host(connection, server, origin, "unpause", TaskState.UNPAUSING)


def suspend(connection: Connection, server: Server, origin: Origin) -> None:
    require_state(server, "suspend", (VmState.ACTIVE,))
    ask_host(connection, server, origin, "suspend", TaskState.SUSPENDING)


def resume(connection: Connection, server: Server, origin: Origin) -> None:
    require_state(server, "resume", (VmState.SUSPENDED,))
    ask_host(connection, server, origin, "resume", TaskState.RESUMING)


def reboot(connection: Connection, server: Server, origin: Origin, *, hard: bool) -> None:
    """A hard reboot may cut other work short, and wakes servers that don't run."""
    if hard:
        require_state(server, "reboot", _REBOOTABLE, _INTERRUPTIBLE)
        discarding.cancel_all_else(connection, server)
    else:
        require_state(server, "reboot", (VmState.ACTIVE,))
    task = TaskState.REBOOTING_HARD if hard else TaskState.REBOOTING
    ask_host(connection, server, origin, "reboot", task, {"hard": hard})


_DUMPABLE = (VmState.ACTIVE, VmState.PAUSED, VmState.RESCUED, VmState.RESIZED, VmState.ERROR)


def trigger_crash_dump(connection: Connection, server: Server, origin: Origin) -> None:
    """It is not said that anything is being done to the server, which may be why its system crashes."""
    require_state(server, "trigger_crash_dump", _DUMPABLE)
    ask_host(connection, server, origin, "trigger_crash_dump", None)


def ask_host(
    connection: Connection,
    server: Server,
    origin: Origin,
    kind: str,
    task_state: TaskState | None,
    data: Mapping[str, Any] | None = None,
    *,
    action: str | None = None,
    secrets: Mapping[str, str] | None = None,
) -> None:
    """Write an operation of the server's host, and its action, by the same name unless one is given."""
    if server.host is None:
        raise ServerNotReady(server.uuid)
    action_id = actions.start(connection, server.id, action or kind, origin)
    servers.set_state(connection, server.id, task_state=task_state)
    queue.enqueue(connection, server.id, kind, dict(data or {}), action_id, secrets=secrets)


def lock(connection: Connection, server: Server, origin: Origin, reason: str | None) -> None:
    """Who works in the project locks as its owner, and changes no lock that is there."""
    is_owner = server.project_id == origin.project_id
    if server.locked_by is not None and is_owner:
        return
    action_id = actions.start(connection, server.id, "lock", origin)
    locked_by = OWNER if is_owner else ADMIN
    servers.update(connection, server.id, locked_by=locked_by, locked_reason=reason or server.locked_reason)
    actions.finish(connection, {action_id: None})


def may_unlock(server: Server, origin: Origin) -> bool:
    """Whether the lock is one that this caller would have made."""
    expected = OWNER if server.project_id == origin.project_id else ADMIN
    return server.locked_by in (None, expected)


def unlock(connection: Connection, server: Server, origin: Origin) -> None:
    action_id = actions.start(connection, server.id, "unlock", origin)
    servers.update(connection, server.id, locked_by=None, locked_reason=None)
    actions.finish(connection, {action_id: None})


def pin_zone(connection: Connection, server: Server, zone: str | None) -> None:
    """Moves stay in the zone from now on, which has to be the one that it is in; None frees it of that."""
    if zone is not None and server.requested_zone not in (None, zone):
        raise ConflictError(
            "Cannot change pinned availability zone directly. Unpin first by setting "
            "pinned_availability_zone to null."
        )
    if zone is not None and server.requested_zone is None and zone != server.availability_zone:
        raise ConflictError(
            f"Server can only be pinned to its current availability zone '{server.availability_zone}', but "
            f"'{zone}' was requested."
        )
    if zone != server.requested_zone:
        servers.update(connection, server.id, requested_zone=zone)


def reset_state(connection: Connection, server: Server, origin: Origin, vm_state: VmState) -> None:
    """An administrator knows better: what was going on is given up."""
    action_id = actions.start(connection, server.id, "resetState", origin)
    cut_short(connection, server)
    servers.count_again(connection, server)
    lost_machines.find_again(connection, server)
    move = migrations.active(connection, server.id)
    task_state = None if move is None else TaskState.RESIZE_REVERTING
    servers.set_state(connection, server.id, vm_state=vm_state, task_state=task_state)
    if move is not None:
        _unwind(connection, server, move)
    actions.finish(connection, {action_id: None})


def _unwind(connection: Connection, server: Server, migration: Migration) -> None:
    """The server stays where it is; the other end of its move releases it."""
    data = Move.from_migration(migration).as_data()
    if server.host != migration.source_host:
        data["placed"] = data["move"]["source"]
    elif migration.dest_host is not None:
        other = MoveEnd(migration.dest_host, migration.dest_node or "", migration.dest_node_uuid or "")
        data["placed"] = msgspec.to_builtins(other)
    queue.enqueue(connection, server.id, "unwind", data)
