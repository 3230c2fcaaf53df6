"""Confirm a move: what was kept at the source is given up.

begin → leave (the source destroys its copy) → left → done
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sqlalchemy.engine import Connection

from moorage.compute.moves.migrations import Status
from moorage.compute.moves.move import Move
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event, Origin
from moorage.compute.servers.states import PowerNumber, TaskState, VmState
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moving import Moving
from moorage.core import uuids

_EVENT = "compute_confirm_resize"


class ConfirmResize(Moving):
    def steps(self) -> dict[str, Step]:
        return {"begin": self.begin, "leave": self.leave, "left": self.left, "release": self.release}

    def begin(self, batch: Sequence[Work]) -> None:
        """Once this is written down, nobody can revert any more; before that, nothing is done."""
        for work in batch:
            work.changes["task_state"] = TaskState.RESIZE_CONFIRMING.value
            self.record(work, Status.CONFIRMING)
            work.advance("leave")

    def not_left(self, work: Work, error: str) -> None:
        self.give_up(work, f"the host that it came from could not remove it: {error}")

    def release(self, batch: Sequence[Work]) -> None:
        for work in batch:
            self._tools.both_ends.let_go(Move.of(work.data).migration_uuid)
            shut_down = work.server["power_state"] == PowerNumber.SHUT_DOWN
            work.changes |= {
                "vm_state": (VmState.STOPPED if shut_down else VmState.ACTIVE).value,
                "task_state": None,
            }
            self.record(work, Status.CONFIRMED)
            self.note(work, _EVENT, host=Move.of(work.data).source.host)
            work.finish()

    def note(self, work: Work, event: str, error: str | None = None, host: str | None = None) -> None:
        """What happened by itself, since nobody decided in time, is an action all the same."""
        if work.operation.action_id is None:
            work.writes.append(partial(_record_by_itself, work.server, Event(None, event, host, error)))
        else:
            super().note(work, event, error, host)

    def give_up(self, work: Work, error: str) -> None:
        """It can be confirmed again, or reverted."""
        work.changes = {"vm_state": VmState.RESIZED.value, "task_state": None}
        work.writes = []
        self.record(work, Status.FINISHED)
        self.note(work, _EVENT, error, host=Move.of(work.data).source.host)
        work.fail(error)


def _record_by_itself(server: Mapping[str, Any], event: Event, connection: Connection) -> None:
    origin = Origin(f"req-{uuids.generate()}", user_id="", project_id=server["project_id"])
    actions.record(connection, server["id"], "confirmResize", origin, event)
