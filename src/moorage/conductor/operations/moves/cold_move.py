"""Cold moves: a server is shut down, handed over to another host, and waits there to be confirmed.

    … agree → hand_over (the source shuts it down) → bind → take_over (the destination starts it) → resized

A resize is the same with another flavor. Where operators allow it, its destination may be the node that the
server is on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.notifications import Phase
from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.moves.move import Move
from moorage.compute.quotas import usage
from moorage.compute.servers import server_spec
from moorage.compute.servers.states import TaskState, VmState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moves.moving import Moving, destination, source, stays
from moorage.conductor.operations.moves.shared_steps import AT_DESTINATION, AT_SOURCE, CLEAN, GOING_BACK
from moorage.conductor.placing.placed import MoveState
from moorage.core.clock import utcnow
from moorage.ledger import queue
from moorage.ledger.declared import Step, back_by


class ColdMoveState(MoveState, kw_only=True, omit_defaults=True):
    asked_source: bool = False
    """The server may have been shut down there."""


class ColdMove(Moving[ColdMoveState]):
    name = "cold_move"
    state = ColdMoveState
    steps = (
        Step("begin", then=("schedule",), cancel=back_by("restore")),
        Step("schedule", then=("agree", "restore"), cancel=back_by("retreat")),
        Step("agree", then=("hand_over", "bind", "retreat"), cancel=back_by("retreat")),
        Step("hand_over", then=("handed_over", "clean"), cancel=CLEAN),
        Step("handed_over", then=("bind", "hand_over", "clean"), waits=AT_SOURCE, cancel=CLEAN),
        Step("bind", then=("take_over", "clean"), cancel=CLEAN),
        Step("take_over", then=("taken_over", "clean"), cancel=CLEAN),
        Step("taken_over", then=("take_over", "clean"), waits=AT_DESTINATION, cancel=CLEAN),
        *GOING_BACK,
    )
    notification = "resize"
    tells = ("resize_prep", "resize_finish")
    arrive_event = "compute_finish_resize"

    def depart(self, work: Work[ColdMoveState]) -> None:
        self.note(work, "compute_prep_resize", host=destination(work).host)
        work.tell("resize_prep")
        if work.state.parcel is not None:  # an earlier destination failed; the source has done its part
            work.advance("bind")
            return
        work.state.asked_source = True
        work.changes["task_state"] = TaskState.RESIZE_MIGRATING.value
        self.record(work, MigrationStatus.MIGRATING)
        work.advance_to_task("hand_over")

    def stopped_at_source(self, work: Work[ColdMoveState]) -> bool:
        return work.state.asked_source

    def hand_over(self, batch: Sequence[Work[ColdMoveState]]) -> None:
        self.order(
            batch,
            "hand_over",
            then="handed_over",
            end=source,
            elsewhere=False,
            payload=lambda work: {"flavor": work.state.move.flavor},
        )

    def handed_over(self, batch: Sequence[Work[ColdMoveState]]) -> None:
        for work, facts in self.done(batch, "hand_over", end=source, elsewhere=False):
            work.state.parcel = facts["parcel"]
            work.changes["task_state"] = TaskState.RESIZE_MIGRATED.value
            self.record(work, MigrationStatus.POST_MIGRATING)
            self.note(work, "compute_resize_instance", host=source(work).host)
            work.advance("bind")

    def arrive(self, work: Work[ColdMoveState]) -> None:
        work.changes["task_state"] = TaskState.RESIZE_FINISH.value
        work.tell("resize_finish", Phase.START)
        work.advance_to_task("take_over")

    def take_over(self, batch: Sequence[Work[ColdMoveState]]) -> None:
        self.order(batch, "take_over", then="taken_over", end=destination, elsewhere=True, payload=arrival)

    def taken_over(self, batch: Sequence[Work[ColdMoveState]]) -> None:
        for work, facts in self.done(batch, "take_over", end=destination, elsewhere=True):
            self._arrived(work, facts)

    def _arrived(self, work: Work[ColdMoveState], facts: dict[str, Any]) -> None:
        move, end = work.state.move, destination(work)
        work.changes |= {
            **end.as_columns(),
            "flavor": move.flavor,
            "flavorid": move.flavor["id"],
            "vm_state": VmState.RESIZED.value,
            "task_state": None,
            "power_state": facts["power_state"],
            "launched_at": utcnow(),
            "progress": 100,
            "fault": None,
        }
        self.record(work, MigrationStatus.FINISHED)
        self.note(work, self.arrive_event, host=end.host)
        work.tell("resize_finish", Phase.END)
        work.writes.append(partial(_settle_quota, work.server.project_id, move))
        if self._tools.confirm_window > 0:
            work.writes.append(partial(_confirm_later, work, self._tools.confirm_window))
        work.finish()


def arrival(work: Work[MoveState]) -> dict[str, Any]:
    """What the destination is told: the server as it shall be there, and what its source gave along."""
    move = work.state.move
    spec = server_spec.of(
        work.server,
        node_uuid=destination(work).node_uuid,
        allocations=work.state.place.allocations,
        flavor=move.flavor,
        power_on=move.runs,
    )
    return {"spec": spec, "parcel": work.state.parcel, **({"in_place": True} if stays(work) else {})}


def _settle_quota(project_id: str, move: Move, connection: Connection) -> None:
    usage.resized(connection, project_id, move.old_flavor, move.flavor, move.reserved)
    migrations.change(connection, move.migration_id, reserved={})


def _confirm_later(work: Work[MoveState], seconds: int, connection: Connection) -> None:
    """Nobody has to ask: the ledger comes back to it in time, unless somebody decides before."""
    move = msgspec.structs.replace(work.state.move, reserved={})
    due_at = utcnow() + timedelta(seconds=seconds)
    data = {"move": msgspec.to_builtins(move)}
    queue.enqueue(connection, work.server.id, "confirm_resize", data, due_at=due_at)
