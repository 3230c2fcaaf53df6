"""Resizes that have arrived, and wait for somebody to say whether all is well."""

from __future__ import annotations

import msgspec

from moorage.compute.errors import ComputeError
from moorage.compute.imaging import discarding
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import Migration, MigrationStatus
from moorage.compute.moves.move import Move
from moorage.compute.moves.moves import ActionContext, MoveQuotas, reserve
from moorage.compute.servers import actions, servers
from moorage.compute.servers.lifecycle import require_state
from moorage.compute.servers.server_errors import ServiceUnavailable
from moorage.compute.servers.states import TaskState, VmState
from moorage.ledger import queue


def confirm(ask: ActionContext) -> None:
    """What was kept at the source goes."""
    require_state(ask.server, "confirmResize", (VmState.RESIZED,))
    migration = _arrived(ask)
    if not ask.host_is_up(migration.source_host):
        raise ServiceUnavailable
    migrations.change(ask.connection, migration.id, MigrationStatus.CONFIRMING)
    move = Move.from_migration(migration)
    _decide(ask, "confirmResize", "confirm_resize", TaskState.RESIZE_CONFIRMING, move)


def revert(ask: ActionContext, bounds: MoveQuotas) -> None:
    """Back to where it was, and what; going back to a larger flavor needs the quota for it."""
    require_state(ask.server, "revertResize", (VmState.RESIZED,))
    migration = _arrived(ask)
    reserved = reserve(ask, ask.server.flavor, migration.old_flavor, bounds)
    migrations.change(ask.connection, migration.id, MigrationStatus.REVERTING, reserved=reserved)
    move = msgspec.structs.replace(Move.from_migration(migration), reserved=reserved)
    _decide(ask, "revertResize", "revert_resize", TaskState.RESIZE_REVERTING, move)


def _arrived(ask: ActionContext) -> Migration:
    migration = migrations.active(ask.connection, ask.server.id)
    if migration is None or migration.status != MigrationStatus.FINISHED:
        raise ComputeError("Instance has not been resized.")
    return migration


def _decide(ask: ActionContext, action: str, kind: str, task_state: TaskState, move: Move) -> None:
    """What was to confirm it by itself, sooner or later, is called off."""
    discarding.cancel_all_else(ask.connection, ask.server)
    action_id = actions.start(ask.connection, ask.server.id, action, ask.origin)
    servers.set_state(ask.connection, ask.server.id, task_state=task_state)
    queue.enqueue(ask.connection, ask.server.id, kind, move.as_data(), action_id)
