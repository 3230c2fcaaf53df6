"""Confirm a move: what was kept at the source is given up.

begin → leave (the source destroys its copy) → left → done
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy.engine import Connection

from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event, Origin
from moorage.compute.servers.server import Server
from moorage.compute.servers.states import PowerNumber, TaskState, VmState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moves.moving import Moving
from moorage.conductor.operations.moves.shared_steps import AT_SOURCE
from moorage.conductor.placing.placed import MoveState
from moorage.core import uuids
from moorage.ledger.declared import GIVE_UP, Step, refused

_EVENT = "compute_confirm_resize"
_NO_CANCEL = refused("what was kept of the server is being removed already")


class ConfirmResize(Moving[MoveState]):
    name = "confirm_resize"
    steps = (
        Step("begin", then=("leave",), cancel=GIVE_UP),
        Step("leave", then=("left", "release"), cancel=_NO_CANCEL),
        Step("left", then=("leave", "release"), waits=AT_SOURCE, cancel=_NO_CANCEL),
        Step("release", cancel=_NO_CANCEL),
    )
    notification = "resize_confirm"

    def begin(self, batch: Sequence[Work[MoveState]]) -> None:
        """Once this is written down, nobody can revert any more; before that, nothing is done."""
        for work in batch:
            work.changes["task_state"] = TaskState.RESIZE_CONFIRMING.value
            self.record(work, MigrationStatus.CONFIRMING)
            work.advance("leave")

    def not_left(self, work: Work[MoveState], error: str) -> None:
        self.give_up(work, f"the host that it came from could not remove it: {error}")

    def release(self, batch: Sequence[Work[MoveState]]) -> None:
        for work in batch:
            self._tools.both_ends.release_source(work.state.move.migration_uuid)
            shut_down = work.server.power_state == PowerNumber.SHUT_DOWN
            work.changes |= {
                "vm_state": (VmState.STOPPED if shut_down else VmState.ACTIVE).value,
                "task_state": None,
            }
            self.record(work, MigrationStatus.CONFIRMED)
            self.note(work, _EVENT, host=work.state.move.source.host)
            work.finish()

    def note(
        self, work: Work[MoveState], event: str, error: str | None = None, host: str | None = None
    ) -> None:
        """What happened by itself, since nobody decided in time, is an action all the same."""
        if work.operation.action_id is None:
            work.writes.append(partial(_record_by_itself, work.server, Event(None, event, host, error)))
        else:
            super().note(work, event, error, host)

    def cancel(self, work: Work[MoveState], reason: str) -> None:
        self.give_up(work, reason)

    def give_up(self, work: Work[MoveState], error: str) -> None:
        """It can be confirmed again, or reverted."""
        work.changes = {"vm_state": VmState.RESIZED.value, "task_state": None}
        work.writes = []
        self.record(work, MigrationStatus.FINISHED)
        self.note(work, _EVENT, error, host=work.state.move.source.host)
        work.fail(error)


def _record_by_itself(server: Server, event: Event, connection: Connection) -> None:
    origin = Origin(f"req-{uuids.generate()}", user_id="", project_id=server.project_id)
    actions.record(connection, server.id, "confirmResize", origin, event)
