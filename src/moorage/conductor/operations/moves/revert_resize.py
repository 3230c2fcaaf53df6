"""Revert a move: the server is given up at its destination, and runs again where it came from.

begin → clean (the destination destroys it) → cleaned → retreat (allocations, ports, group)
→ restore (the source starts it) → restored → done
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy.engine import Connection

from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.moves.move import Move
from moorage.compute.quotas import usage
from moorage.compute.servers.states import PowerNumber, VmState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moves.moving import Moving
from moorage.conductor.operations.moves.shared_steps import going_back
from moorage.conductor.placing.placed import MoveState, Placed
from moorage.ledger.declared import GIVE_UP, Step, refused


class RevertResize(Moving[MoveState]):
    """As going back in mid-move, only that it is what was asked for."""

    name = "revert_resize"
    steps = (
        Step("begin", then=("clean",), cancel=GIVE_UP),
        *going_back(cancel=refused("the server goes back already")),
    )
    notification = "resize_revert"

    def begin(self, batch: Sequence[Work[MoveState]]) -> None:
        """Nothing is destroyed before it is certain that the source is there to go on."""
        sources = {work.state.move.source.node_uuid for work in batch}
        states = self._tools.hosts.states(sources)
        for work in batch:
            state = states.get(work.state.move.source.node_uuid)
            if state is None or not state.up:
                self.give_up(work, "the host that it came from is down")
                continue
            work.state.move = work.state.move.from_zone(state.zone)
            work.state.placed = Placed(
                work.server.host or "",
                work.server.node or "",
                work.server.node_uuid or "",
                work.server.availability_zone,
                state.cell,
            )
            work.state.last_error = ""
            work.advance("clean")

    def not_cleaned(self, work: Work[MoveState], error: str) -> None:
        """It may still run there, so it must not be started where it came from."""
        self.give_up(work, f"its host could not remove it: {error}")

    def stopped_at_source(self, work: Work[MoveState]) -> bool:
        return True

    def over(self, work: Work[MoveState]) -> None:
        move = work.state.move
        power = PowerNumber.RUNNING if move.old_state == VmState.ACTIVE else PowerNumber.SHUT_DOWN
        work.changes |= {
            **move.source.as_columns(),
            "flavor": move.old_flavor,
            "flavorid": move.old_flavor["id"],
            "vm_state": move.old_state,
            "task_state": None,
            "power_state": power,
        }
        self.record(work, MigrationStatus.REVERTED)
        self.note(work, "compute_finish_revert_resize", host=move.source.host)
        work.writes.append(partial(_settle_quota, work.server.project_id, move))
        work.finish()

    def cancel(self, work: Work[MoveState], reason: str) -> None:
        self.give_up(work, reason)

    def give_up(self, work: Work[MoveState], error: str) -> None:
        """Before anything was destroyed it can be asked again; later an administrator has to look."""
        if work.operation.step in ("begin", "cleaned"):
            work.changes = {"vm_state": VmState.RESIZED.value, "task_state": None}
            work.writes = [partial(_free_quota, work.server.project_id, work.state.move)]
            self.record(work, MigrationStatus.FINISHED)
            self.note(work, "compute_revert_resize", error, host=work.server.host)
            work.fail(error)
        else:
            super().give_up(work, error)


def _settle_quota(project_id: str, move: Move, connection: Connection) -> None:
    usage.resized(connection, project_id, move.flavor, move.old_flavor, move.reserved)
    migrations.change(connection, move.migration_id, reserved={})


def _free_quota(project_id: str, move: Move, connection: Connection) -> None:
    usage.resized(connection, project_id, move.flavor, move.flavor, move.reserved)
    migrations.change(connection, move.migration_id, reserved={})
