"""Power update: another service saw a machine's power change; the server becomes what its host says it is."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.compute.servers.states import PowerNumber, VmState
from moorage.conductor.agents.agents import Agents
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.deciding.hosts import Hosts

_STATE_OF = {PowerNumber.RUNNING: VmState.ACTIVE.value, PowerNumber.SHUT_DOWN: VmState.STOPPED.value}


class PowerUpdate:
    """Nothing is done to the machine: it is looked at."""

    def __init__(self, agents: Agents, hosts: Hosts) -> None:
        self._agents = agents
        self._hosts = hosts

    def steps(self) -> dict[str, Step]:
        return {"begin": self.begin, "done": self.done}

    def begin(self, batch: Sequence[Work]) -> None:
        """A host that is down is not waited for: it tells by itself what it sees once it is back."""
        up = self._hosts.up()
        for work in batch:
            if work.server["host"] not in up:
                self.give_up(work, "the host is down")
        reachable = [work for work in batch if work.outcome is None]
        self._agents.ask(reachable, "look", then="done", payload=lambda _work: {})

    def done(self, batch: Sequence[Work]) -> None:
        for work in batch:
            result = work.take_result()
            if result is None:
                if not self._agents.ask_again(work, "begin"):
                    self.give_up(work, "the host did not answer")
            elif result["ok"]:
                power = int(result["facts"]["power_state"])
                vm_state = _STATE_OF.get(power, work.server["vm_state"])
                work.changes = {"vm_state": vm_state, "task_state": None, "power_state": power}
                work.finish()
            else:
                self.give_up(work, result["error"])

    def give_up(self, work: Work, error: str) -> None:
        """The server is what it was; its action says what went wrong."""
        work.changes = {"task_state": None}
        work.fail(error)
