"""Start, stop, reboot: one task for the agent, one state when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from moorage.compute.servers.states import VmState
from moorage.conductor.engine.kind import Step
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import OperationKind


class PowerState(msgspec.Struct, omit_defaults=True):
    hard: bool = False
    """Of a reboot: the machine is not asked politely."""


class Power(OperationKind):
    state = PowerState
    steps = (Step("begin", then=("done",)), Step("done", then=("begin",)))
    state_after: ClassVar[VmState] = VmState.ACTIVE

    def begin(self, batch: Sequence[Work[PowerState]]) -> None:
        self._tools.agents.ask(
            batch, self.name, then="done", payload=lambda work: msgspec.to_builtins(work.state)
        )

    def done(self, batch: Sequence[Work[PowerState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "begin"):
            match answer:
                case Done(facts):
                    work.changes = {
                        "vm_state": self.state_after.value,
                        "task_state": None,
                        "power_state": facts.get("power_state", work.server.power_state),
                    }
                    work.finish()
                case Failed(error):
                    self.give_up(work, error)
                case Silent():
                    self.give_up(work, "the host did not answer")

    def give_up(self, work: Work[PowerState], error: str) -> None:
        """The server is what it was; its action says what went wrong."""
        work.changes = {"task_state": None}
        work.fail(error)


class Start(Power):
    name = "start"
    notification = "power_on"


class Stop(Power):
    name = "stop"
    notification = "power_off"
    state_after = VmState.STOPPED


class Reboot(Power):
    name = "reboot"
    notification = "reboot"
