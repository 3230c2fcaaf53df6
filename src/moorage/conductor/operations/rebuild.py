"""Rebuild: a server is made anew where it is, from the same image or another one.

    begin (may the image run there?) → rebuild → rebuilt

The server keeps its place and its allocations, so nothing is claimed: a new image is held against the one
node that it has to run on, whatever room is left there. The image that it has is not: it runs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from moorage.bus.contract import UNCHANGED
from moorage.compute.servers import actions, server_spec
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import TaskState, VmState
from moorage.conductor.agents import lasting_hardware
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind
from moorage.ledger.declared import GIVE_UP, Awaited, Step, Wait
from moorage.ledger.operation import FIRST_STEP

_EVENT = "compute_rebuild_instance"


class RebuildState(msgspec.Struct):
    new_image: bool
    runs: bool
    """Whether it shall run afterwards."""
    before: dict[str, Any]
    """Columns of the server as they were: until its host begins, it can be as it was."""
    preserve_ephemeral: bool = False
    """What is on its ephemeral disk stays."""


class Rebuild(OperationKind):
    name = "rebuild"
    state = RebuildState
    steps = (
        Step("begin", then=("rebuild",), cancel=GIVE_UP),
        Step("rebuild", then=("rebuilt",), cancel=GIVE_UP),
        Step("rebuilt", then=("rebuild",), waits=Wait(Awaited.ANSWER), cancel=GIVE_UP),
    )
    notification = "rebuild"
    tells = ("rebuild_scheduled",)

    def begin(self, batch: Sequence[Work[RebuildState]]) -> None:
        for work in batch:
            objection = self._objection(work)
            if objection is not None:
                self._leave_as_it_was(work, objection)
                continue
            work.changes["task_state"] = TaskState.REBUILD_SPAWNING.value
            work.tell("rebuild_scheduled", None)
            work.advance("rebuild")

    def _objection(self, work: Work[RebuildState]) -> str | None:
        node = work.server.node_uuid
        can = None if node is None else self._tools.hosts.capabilities(node)
        if can is not None and not can.rebuild:
            return "the driver of its host can't rebuild servers"
        if can is not None and work.state.preserve_ephemeral and not can.keeps_ephemeral:
            return "the driver of its host can't preserve ephemeral disks"
        return self._tools.fitness.objection(work.server) if work.state.new_image else None

    def rebuild(self, batch: Sequence[Work[RebuildState]]) -> None:
        up = self._tools.hosts.up()
        for work in batch:
            if work.server.host not in up:
                self._leave_as_it_was(work, "the host of the server is down")
        self._tools.agents.ask(
            [work for work in batch if work.server.host in up],
            "rebuild",
            then="rebuilt",
            payload=self._payload,
        )

    def _payload(self, work: Work[RebuildState]) -> dict[str, Any]:
        runs, preserve = work.state.runs, work.state.preserve_ephemeral
        return {"spec": server_spec.of(work.server, power_on=runs, preserve_ephemeral=preserve)}

    def rebuilt(self, batch: Sequence[Work[RebuildState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "rebuild"):
            match answer:
                case Done(facts):
                    work.changes = {
                        "vm_state": (VmState.ACTIVE if work.state.runs else VmState.STOPPED).value,
                        "task_state": None,
                        "power_state": facts["power_state"],
                        "fault": None,
                    }
                    lasting_hardware.keep(work, facts)
                    self._note(work)
                    work.finish()
                case Failed(error, facts=facts) if facts.get(UNCHANGED):
                    self._leave_as_it_was(work, error)
                case Failed(error):
                    self.give_up(work, error)
                case Silent():
                    self.give_up(work, "the host did not answer")

    def give_up(self, work: Work[RebuildState], error: str) -> None:
        """What is on its disk now is not known."""
        work.changes = {"vm_state": VmState.ERROR.value, "task_state": None, "fault": fault(error)}
        self._note(work, error)
        work.fail(error)

    def cancel(self, work: Work[RebuildState], reason: str) -> None:
        if work.operation.step == FIRST_STEP:
            self._leave_as_it_was(work, reason)
        else:
            self.give_up(work, reason)

    def _leave_as_it_was(self, work: Work[RebuildState], error: str) -> None:
        """Nothing was done to the server yet, so it has what it had."""
        work.changes = {**work.state.before, "task_state": None, "fault": fault(error)}
        self._note(work, error)
        work.fail(error)

    def _note(self, work: Work[RebuildState], error: str | None = None) -> None:
        event = Event(work.operation.action_id, _EVENT, work.server.host, error)
        work.write_together(actions.add_events, event)
