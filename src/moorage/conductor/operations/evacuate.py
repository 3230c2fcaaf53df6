"""Evacuate: a server whose host is dead is made anew on another one.

    … agree → bind → spawn → spawned → the dead host is told, if it ever listens again

The hosts share no storage, so the server starts from its image.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.servers.states import TaskState, VmState
from moorage.conductor.agents import server_spec
from moorage.conductor.engine.kind import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moving import Moving, destination
from moorage.conductor.placing.placed import MoveState
from moorage.core.clock import utcnow

LOG = logging.getLogger(__name__)


class Evacuate(Moving[MoveState]):
    name = "evacuate"
    steps = (
        Step("begin", then=("schedule",)),
        Step("schedule", then=("agree", "restore")),
        Step("agree", then=("bind", "retreat")),
        Step("bind", then=("spawn", "clean")),
        Step("spawn", then=("spawned", "clean")),
        Step("spawned", then=("release", "spawn", "clean")),
        Step("release"),
        Step("clean", then=("cleaned", "retreat")),
        Step("cleaned", then=("clean", "retreat")),
        Step("retreat", then=("schedule", "restore")),
        Step("restore", then=("restored",)),
        Step("restored", then=("restore",)),
    )
    notification = "evacuate"
    arrive_event = "compute_rebuild_instance"

    def depart(self, work: Work[MoveState]) -> None:
        work.advance("bind")

    def arrive(self, work: Work[MoveState]) -> None:
        work.changes["task_state"] = TaskState.REBUILD_SPAWNING.value
        work.advance_to_task("spawn")

    def spawn(self, batch: Sequence[Work[MoveState]]) -> None:
        self.order(
            batch,
            "spawn",
            then="spawned",
            end=destination,
            elsewhere=True,
            payload=lambda work: server_spec.of(
                work.server, node_uuid=destination(work).node_uuid, power_on=work.state.move.runs
            ),
        )

    def spawned(self, batch: Sequence[Work[MoveState]]) -> None:
        for work, facts in self.done(batch, "spawn", end=destination, elsewhere=True):
            self._arrived(work, facts)

    def _arrived(self, work: Work[MoveState], facts: dict[str, Any]) -> None:
        """From here on the server is at its destination, and what the source still has is a stray."""
        runs = work.state.move.runs
        work.changes |= {
            **destination(work).as_columns(),
            "vm_state": (VmState.ACTIVE if runs else VmState.STOPPED).value,
            "power_state": facts["power_state"],
            "launched_at": utcnow(),
            "fault": None,
        }
        self.note(work, self.arrive_event, host=destination(work).host)
        work.advance("release")

    def release(self, batch: Sequence[Work[MoveState]]) -> None:
        for work in batch:
            self._tools.both_ends.release_source(work.state.move.migration_uuid)
            self._tools.agents.discard(work, work.state.move.source.host)
            work.changes["task_state"] = None
            self.record(work, MigrationStatus.DONE)
            work.finish()
