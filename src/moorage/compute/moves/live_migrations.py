"""Live migrations that are under way: calling one off, or having it end soon."""

from __future__ import annotations

from moorage.compute.errors import ComputeError, NotFoundError
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import LiveMigrationWish, Migration, MigrationStatus
from moorage.compute.moves.moves import ActionContext
from moorage.compute.servers import actions
from moorage.compute.servers.lifecycle import require_state
from moorage.compute.servers.states import TaskState, VmState
from moorage.ledger import queue


class InvalidMigrationState(ComputeError):
    def __init__(self, migration: Migration, method: str) -> None:
        super().__init__(
            f"Migration {migration.id} state of instance {migration.server_uuid} is {migration.status}. "
            f"Cannot {method} while the migration is in this state."
        )


def abort(ask: ActionContext, identity: str, *, queued: bool) -> None:
    """Call it off: while it runs, or, if `queued`, also before."""
    require_state(ask.server, "abort live migration", None, (TaskState.MIGRATING,))
    migration = migrations.find(ask.connection, ask.server.uuid, identity)
    if migration is None:
        raise NotFoundError(f"Migration {identity} not found for instance {ask.server.uuid}")
    allowed = (
        (MigrationStatus.RUNNING, MigrationStatus.QUEUED, MigrationStatus.PREPARING)
        if queued
        else (MigrationStatus.RUNNING,)
    )
    if migration.status not in allowed:
        raise InvalidMigrationState(migration, "abort live migration")
    _wish(ask, migration, LiveMigrationWish.ABORT, "live_migration_cancel")


def force_complete(ask: ActionContext, identity: str) -> None:
    """Have it end soon, whatever that costs the server."""
    require_state(ask.server, "force_complete", (VmState.ACTIVE,), (TaskState.MIGRATING,))
    migration = migrations.find(ask.connection, ask.server.uuid, identity)
    if migration is None:
        raise ComputeError(f"Migration {identity} not found for instance {ask.server.uuid}")
    if migration.status != MigrationStatus.RUNNING:
        raise InvalidMigrationState(migration, "force complete")
    _wish(ask, migration, LiveMigrationWish.HURRY, "live_migration_force_complete")


def _wish(ask: ActionContext, migration: Migration, wish: LiveMigrationWish, action: str) -> None:
    """Write the wish down, and have whoever works on the migration look."""
    action_id = actions.start(ask.connection, ask.server.id, action, ask.origin)
    migrations.change(ask.connection, migration.id, wish=wish.value)
    queue.nudge(ask.connection, ask.server.id)
    actions.finish(ask.connection, {action_id: None})
