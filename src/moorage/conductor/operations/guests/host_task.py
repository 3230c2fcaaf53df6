"""What all operations have in common that are one task for the server's host, and one state once it is done.

A host whose driver can't do it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from moorage.bus.contract import BROKEN
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import VmState
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind
from moorage.ledger.declared import GIVE_UP, Awaited, Step, Wait


class HostTask(OperationKind):
    """The task may be done twice."""

    steps: ClassVar[tuple[Step, ...]] = (
        Step("begin", then=("done",), cancel=GIVE_UP),
        Step("done", then=("begin",), waits=Wait(Awaited.ANSWER), cancel=GIVE_UP),
    )
    state_after: ClassVar[VmState | None] = None
    """None: the server is what it was."""
    task: ClassVar[str] = ""
    """Empty: it has the name of the operation."""
    event: ClassVar[str]
    """What instance actions call the work of the host."""

    def begin(self, batch: Sequence[Work[Any]]) -> None:
        self._tools.agents.ask(batch, self.task or self.name, then="done", payload=self.payload)

    def payload(self, work: Work[Any]) -> dict[str, Any]:
        """What the host is told."""
        told: dict[str, Any] = msgspec.to_builtins(work.state)
        return told

    def done(self, batch: Sequence[Work[Any]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "begin"):
            match answer:
                case Done(facts):
                    self.succeed(work, facts)
                case Failed(error, facts=facts):
                    self.give_up(work, error)
                    if facts.get(BROKEN):
                        work.changes |= {"vm_state": VmState.ERROR.value, "fault": fault(error)}
                case Silent():
                    self.give_up(work, "the host did not answer")

    def succeed(self, work: Work[Any], facts: dict[str, Any]) -> None:
        work.changes |= {
            "vm_state": work.server.vm_state if self.state_after is None else self.state_after.value,
            "task_state": None,
            "power_state": facts.get("power_state", work.server.power_state),
        }
        self.note(work)
        work.finish()

    def give_up(self, work: Work[Any], error: str) -> None:
        """The server is what it was; its action says what went wrong."""
        work.changes = {"task_state": None}
        self.note(work, error)
        work.fail(error)

    def note(self, work: Work[Any], error: str | None = None) -> None:
        event = Event(work.operation.action_id, self.event, work.server.host, error)
        work.write_together(actions.add_events, event)
