"""Power update: another service saw a machine's power change; the server becomes what its host says it is."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.compute.servers.states import PowerNumber, VmState
from moorage.conductor.engine.work import Done, Failed, Silent, Work
from moorage.conductor.operations.kind import NoState, OperationKind
from moorage.ledger.declared import GIVE_UP, Awaited, Step, Wait

_STATE_OF: dict[int, str] = {
    PowerNumber.RUNNING: VmState.ACTIVE.value,
    PowerNumber.SHUT_DOWN: VmState.STOPPED.value,
}


class PowerUpdate(OperationKind):
    """Nothing is done to the machine: it is looked at."""

    steps = (
        Step("begin", then=("done",), cancel=GIVE_UP),
        Step("done", then=("begin",), waits=Wait(Awaited.ANSWER), cancel=GIVE_UP),
    )

    def begin(self, batch: Sequence[Work[NoState]]) -> None:
        """A host that is down is not waited for: it tells by itself what it sees once it is back."""
        up = self._tools.hosts.up()
        for work in batch:
            if work.server.host not in up:
                self.give_up(work, "the host is down")
        reachable = [work for work in batch if work.outcome is None]
        self._tools.agents.ask(reachable, "look", then="done", payload=lambda _work: {})

    def done(self, batch: Sequence[Work[NoState]]) -> None:
        for work, answer in self._tools.agents.answers(batch, "begin"):
            match answer:
                case Done(facts):
                    power = int(facts["power_state"])
                    vm_state = _STATE_OF.get(power, work.server.vm_state)
                    work.changes = {"vm_state": vm_state, "task_state": None, "power_state": power}
                    work.finish()
                case Failed(error):
                    self.give_up(work, error)
                case Silent():
                    self.give_up(work, "the host did not answer")

    def give_up(self, work: Work[NoState], error: str) -> None:
        """The server is what it was; its action says what went wrong."""
        work.changes = {"task_state": None}
        work.fail(error)


class PoweredOn(PowerUpdate):
    name = "powered_on"
    notification = "power_on"


class PoweredOff(PowerUpdate):
    name = "powered_off"
    notification = "power_off"
