"""Shelve: a server is shut down and put into an image; then, now or later, its host gives it up.

    shelve:          begin → stop → stopped → take → taken (from here on it is shelved) → shelve_offload
    shelve_offload:  begin → destroy → destroyed → release (its claim and the binding of its ports go)

An offloaded server keeps its ports, its addresses and its quota; `unshelve.py` brings it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
from sqlalchemy.engine import Connection

from moorage.compute.imaging.discarding import SHELVED_IMAGE
from moorage.compute.imaging.shelving import DROPPED_GENERATION
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import PowerNumber, TaskState, VmState
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.imaging.imaging import WHILE_DISK_IS_SENT, Imaging, ImagingState
from moorage.conductor.operations.kind import OperationKind
from moorage.conductor.placing import dropping, groups
from moorage.conductor.ports import server_ports
from moorage.core.clock import utcnow
from moorage.ledger import queue
from moorage.ledger.declared import GIVE_UP, Awaited, Step, Wait, refused

OFFLOAD = "shelve_offload"
_RETRY_SECONDS = 5.0
_MOST_TRIES = 5
_NO_CANCEL = refused("its host gives the server up already")


class ShelveState(ImagingState, kw_only=True, omit_defaults=True):
    stopped: bool = False
    """It was shut down for this."""


class Shelve(Imaging[ShelveState]):
    name = "shelve"
    state = ShelveState
    steps = (
        Step("begin", then=("stop",), cancel=GIVE_UP),
        Step("stop", then=("stopped",), cancel=GIVE_UP),
        Step("stopped", then=("take", "stop"), waits=Wait(Awaited.ANSWER), cancel=GIVE_UP),
        Step("take", then=("taken",), cancel=GIVE_UP),
        Step("taken", then=("take",), waits=WHILE_DISK_IS_SENT, cancel=GIVE_UP),
    )
    notification = "shelve"
    event = "compute_shelve_instance"

    def go(self, work: Work[ShelveState]) -> None:
        work.advance("stop")

    def stop(self, batch: Sequence[Work[ShelveState]]) -> None:
        """What it has in memory is on its disk after this, or given up."""
        self._tools.agents.ask(batch, "stop", then="stopped", payload=lambda _work: {})

    def stopped(self, batch: Sequence[Work[ShelveState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "stop"):
            match answer:
                case Done(facts):
                    work.state.stopped = True
                    work.changes["power_state"] = facts["power_state"]
                    work.changes["task_state"] = TaskState.SHELVING_IMAGE_UPLOADING.value
                    work.advance_to_task("take")
                case Failed(error):
                    self.give_up(work, error)
                case Silent():
                    self.give_up(work, "the host did not answer")

    def kept(self, work: Work[ShelveState]) -> None:
        now = self._tools.shelved_offload_time == 0
        work.changes |= {
            "vm_state": VmState.SHELVED.value,
            "task_state": TaskState.SHELVING_OFFLOADING.value if now else None,
            "request": {**work.server.request, SHELVED_IMAGE: {"id": work.state.image_id}},
        }
        self.note(work)
        if self._tools.shelved_offload_time >= 0:
            action_id = work.operation.action_id if now else None
            seconds = self._tools.shelved_offload_time
            work.writes.append(partial(_offload, work.server.id, action_id, seconds))
        work.finish()

    def give_up(self, work: Work[ShelveState], error: str) -> None:
        """One that was shut down for it stays so, and can be started."""
        super().give_up(work, error)
        if work.state.stopped:
            work.changes |= {"vm_state": VmState.STOPPED.value, "fault": fault(error)}


def _offload(server_id: int, action_id: int | None, seconds: int, connection: Connection) -> None:
    """At once, as part of the same action; or later, unless the server is unshelved before."""
    due_at = utcnow() + timedelta(seconds=seconds)
    queue.enqueue(connection, server_id, OFFLOAD, {}, action_id, due_at=due_at)


class OffloadState(msgspec.Struct, omit_defaults=True):
    generation: int = 0
    """Of what the server holds in Placement, before it is dropped."""


class ShelveOffload(OperationKind):
    name = OFFLOAD
    state = OffloadState
    steps = (
        Step("begin", then=("destroy",), cancel=GIVE_UP),
        Step("destroy", then=("destroyed", "release"), cancel=_NO_CANCEL),
        Step("destroyed", then=("destroy", "release"), waits=Wait(Awaited.ANSWER), cancel=_NO_CANCEL),
        Step("release", cancel=_NO_CANCEL),
    )
    notification = "shelve_offload"
    event = "compute_shelve_offload_instance"

    def begin(self, batch: Sequence[Work[OffloadState]]) -> None:
        """Once this is written down, it can't be unshelved any more before it is offloaded."""
        for work in batch:
            if work.server.vm_state != VmState.SHELVED:  # it came back before its time had come
                work.finish()
                continue
            _, generation = self._tools.placement.allocations(work.server.uuid)
            work.state.generation = generation or 0
            work.changes["task_state"] = TaskState.SHELVING_OFFLOADING.value
            work.advance("destroy")

    def destroy(self, batch: Sequence[Work[OffloadState]]) -> None:
        """A host that is down can't be asked: it cleans up when it comes back."""
        up = self._tools.hosts.up()
        for work in batch:
            if work.server.host not in up:
                self._tools.agents.discard(work, work.server.host or "")
                work.advance("release")
        reachable = [work for work in batch if work.server.host in up]
        self._tools.agents.ask(reachable, "destroy", then="destroyed", payload=lambda _work: {})

    def destroyed(self, batch: Sequence[Work[OffloadState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "destroy"):
            match answer:
                case Done():
                    work.advance("release")
                case Failed(error) if work.operation.tries < _MOST_TRIES:
                    work.try_again("destroy", _RETRY_SECONDS, error)
                case Failed(error):
                    self.give_up(work, error)
                case Silent():
                    self.give_up(work, "the host did not answer")

    def release(self, batch: Sequence[Work[OffloadState]]) -> None:
        """Late, it drops nothing that was claimed since, and unbinds only from the host that is left."""
        for work in batch:
            dropped = dropping.drop(self._tools.placement, work, work.state.generation)
            if dropped is None:
                continue
            server = work.server
            host, node_uuid = server.host or "", server.node_uuid or ""
            server_ports.keep(work, self._tools.network.unbind(server_ports.of(work), host, node_uuid))
            work.changes["request"] = {**work.changes["request"], DROPPED_GENERATION: dropped}
            work.changes |= {
                **dict.fromkeys(("host", "node", "node_uuid")),
                "vm_state": VmState.SHELVED_OFFLOADED.value,
                "task_state": None,
                "power_state": PowerNumber.SHUT_DOWN,
            }
            work.writes.append(partial(_leave_group, server.id))
            self._note(work)
            work.finish()

    def give_up(self, work: Work[Any], error: str) -> None:
        """It is still shelved, and can be offloaded again, or unshelved."""
        work.changes = {"task_state": None}
        self._note(work, error)
        work.fail(error)

    def _note(self, work: Work[Any], error: str | None = None) -> None:
        event = Event(work.operation.action_id, self.event, work.server.host, error)
        work.write_together(actions.add_events, event)


def _leave_group(server_id: int, connection: Connection) -> None:
    groups.leave(connection, server_id)
