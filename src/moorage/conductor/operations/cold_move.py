"""Cold moves: a server is shut down, handed over to another host, and waits there to be confirmed.

    … agree → hand_over (the source shuts it down) → bind → take_over (the destination starts it) → resized

A resize is the same with another flavor.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.moves import migrations
from moorage.compute.moves.migrations import Status
from moorage.compute.moves.move import Move
from moorage.compute.quotas import usage
from moorage.compute.servers.states import TaskState, VmState
from moorage.conductor.agents import server_spec
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moving import Moving, destination, source
from moorage.core.clock import utcnow
from moorage.ledger import ledger


class ColdMove(Moving):
    arrive_event = "compute_finish_resize"

    def steps(self) -> dict[str, Step]:
        return {
            **super().steps(),
            "hand_over": self.hand_over,
            "handed_over": self.handed_over,
            "take_over": self.take_over,
            "taken_over": self.taken_over,
        }

    def depart(self, work: Work) -> None:
        self.note(work, "compute_prep_resize", host=destination(work).host)
        if "parcel" in work.data:  # an earlier destination failed; the source has done its part
            work.advance("bind")
            return
        work.data["asked_source"] = True
        work.changes["task_state"] = TaskState.RESIZE_MIGRATING.value
        self.record(work, Status.MIGRATING)
        work.advance_to_task("hand_over")

    def stopped_at_source(self, work: Work) -> bool:
        return "asked_source" in work.data

    def hand_over(self, batch: Sequence[Work]) -> None:
        self.order(batch, "hand_over", then="handed_over", end=source, elsewhere=False)

    def handed_over(self, batch: Sequence[Work]) -> None:
        for work, facts in self.done(batch, "hand_over", end=source, elsewhere=False):
            work.data["parcel"] = facts["parcel"]
            work.changes["task_state"] = TaskState.RESIZE_MIGRATED.value
            self.record(work, Status.POST_MIGRATING)
            self.note(work, "compute_resize_instance", host=source(work).host)
            work.advance("bind")

    def arrive(self, work: Work) -> None:
        work.changes["task_state"] = TaskState.RESIZE_FINISH.value
        work.advance_to_task("take_over")

    def take_over(self, batch: Sequence[Work]) -> None:
        self.order(batch, "take_over", then="taken_over", end=destination, elsewhere=True, payload=arrival)

    def taken_over(self, batch: Sequence[Work]) -> None:
        for work, facts in self.done(batch, "take_over", end=destination, elsewhere=True):
            self._arrived(work, facts)

    def _arrived(self, work: Work, facts: dict[str, Any]) -> None:
        move, end = Move.of(work.data), destination(work)
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
        self.record(work, Status.FINISHED)
        self.note(work, self.arrive_event, host=end.host)
        work.writes.append(partial(_settle_quota, work.server["project_id"], move))
        if self._tools.confirm_window > 0:
            work.writes.append(partial(_confirm_later, work, self._tools.confirm_window))
        work.finish()


def arrival(work: Work) -> dict[str, Any]:
    """What the destination is told: the server as it shall be there, and what its source gave along."""
    move = Move.of(work.data)
    spec = server_spec.of(
        work.server, node_uuid=destination(work).node_uuid, flavor=move.flavor, power_on=move.runs
    )
    return {"spec": spec, "parcel": work.data["parcel"]}


def _settle_quota(project_id: str, move: Move, connection: Connection) -> None:
    usage.resized(connection, project_id, move.old_flavor, move.flavor, move.reserved)
    migrations.change(connection, move.migration_id, reserved={})


def _confirm_later(work: Work, seconds: int, connection: Connection) -> None:
    """Nobody has to ask: the ledger comes back to it in time, unless somebody decides before."""
    move = msgspec.structs.replace(Move.of(work.data), reserved={})
    due_at = utcnow() + timedelta(seconds=seconds)
    data = {"move": msgspec.to_builtins(move)}
    ledger.enqueue(connection, work.server["id"], "confirm_resize", data, due_at=due_at)
