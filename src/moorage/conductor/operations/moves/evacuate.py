"""Evacuate: a server whose host is dead is made anew on another one.

    … agree → bind → spawn → spawned → plugged (if it holds still until its ports are up) → unpause → unpaused
    → the dead host is told, if it ever listens again

If the hosts share their storage, it goes on with its disk; else it starts from its image. Drivers find out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from moorage.compute.moves.migrations import MigrationStatus
from moorage.compute.ports.external_events import PLUGGED
from moorage.compute.servers import server_spec
from moorage.compute.servers.states import TaskState, VmState
from moorage.conductor.engine.work import Work
from moorage.conductor.operations.moves.moving import Moving, destination
from moorage.conductor.operations.moves.shared_steps import AT_DESTINATION, CLEAN, GOING_BACK
from moorage.conductor.placing.placed import MoveState
from moorage.conductor.ports import plugging, server_ports
from moorage.core.clock import utcnow
from moorage.drivers.contract import PAUSED
from moorage.ledger.declared import Awaited, Step, Wait, back_by, refused

LOG = logging.getLogger(__name__)


class EvacuateState(MoveState, kw_only=True, omit_defaults=True):
    spawned_at: datetime | None = None


class Evacuate(Moving[EvacuateState]):
    name = "evacuate"
    state = EvacuateState
    steps = (
        Step("begin", then=("schedule",), cancel=back_by("restore")),
        Step("schedule", then=("agree", "restore"), cancel=back_by("retreat")),
        Step("agree", then=("bind", "retreat"), cancel=back_by("retreat")),
        Step("bind", then=("spawn", "clean"), cancel=CLEAN),
        Step("spawn", then=("spawned", "clean"), cancel=CLEAN),
        Step(
            "spawned",
            then=("plugged", "release", "spawn", "clean"),
            waits=AT_DESTINATION,
            cancel=CLEAN,
        ),
        Step("plugged", then=("unpause", "clean"), waits=Wait(Awaited.PORTS), cancel=CLEAN),
        Step("unpause", then=("unpaused", "clean"), cancel=CLEAN),
        Step("unpaused", then=("release", "unpause", "clean"), waits=AT_DESTINATION, cancel=CLEAN),
        Step("release", cancel=refused("the server runs at its destination already")),
        *GOING_BACK,
    )
    notification = "evacuate"
    tells = ("rebuild_scheduled",)
    arrive_event = "compute_rebuild_instance"

    def depart(self, work: Work[EvacuateState]) -> None:
        work.tell("rebuild_scheduled", None)
        work.advance("bind")

    def arrive(self, work: Work[EvacuateState]) -> None:
        work.changes["task_state"] = TaskState.REBUILD_SPAWNING.value
        work.advance_to_task("spawn")

    def spawn(self, batch: Sequence[Work[EvacuateState]]) -> None:
        self.order(
            batch,
            "spawn",
            then="spawned",
            end=destination,
            elsewhere=True,
            payload=self._spec,
        )

    def _spec(self, work: Work[EvacuateState]) -> dict[str, Any]:
        runs = work.state.move.runs
        return server_spec.of(
            work.server,
            node_uuid=destination(work).node_uuid,
            allocations=work.state.place.allocations,
            power_on=runs,
            keep_disk=True,
            paused=runs and plugging.holds_still(work, self._tools.network, self._tools.plugging),
        )

    def spawned(self, batch: Sequence[Work[EvacuateState]]) -> None:
        for work, facts in self.done(batch, "spawn", end=destination, elsewhere=True):
            if facts["power_state"] == PAUSED:
                work.state.spawned_at = utcnow()
                work.advance(PLUGGED)
            else:
                self._arrived(work, facts)

    def plugged(self, batch: Sequence[Work[EvacuateState]]) -> None:
        """Wait for the ports to come up, as a build does."""
        up = self._tools.network.are_up([server_ports.holding(work) for work in batch])
        for work, is_up in zip(batch, up, strict=True):
            since = work.state.spawned_at or work.operation.created_at
            if not is_up and not self._tools.plugging.over(since):
                work.wait(PLUGGED, plugging.PLUG_LOOK_SECONDS)
            elif not is_up and self._tools.plugging.fatal:
                self.failed(
                    work, "plug", "the ports did not come up in time", destination(work), elsewhere=True
                )
            else:
                work.advance_to_task("unpause")

    def unpause(self, batch: Sequence[Work[EvacuateState]]) -> None:
        self.order(batch, "unpause", then="unpaused", end=destination, elsewhere=True)

    def unpaused(self, batch: Sequence[Work[EvacuateState]]) -> None:
        for work, facts in self.done(batch, "unpause", end=destination, elsewhere=True):
            self._arrived(work, facts)

    def _arrived(self, work: Work[EvacuateState], facts: dict[str, Any]) -> None:
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

    def release(self, batch: Sequence[Work[EvacuateState]]) -> None:
        for work in batch:
            self._tools.both_ends.release_source(work.state.move.migration_uuid)
            self._tools.agents.discard(work, work.state.move.source.host)
            work.changes["task_state"] = None
            self.record(work, MigrationStatus.DONE)
            work.finish()
