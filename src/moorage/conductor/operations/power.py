"""Start, stop, reboot: one task for the agent, one state when it is done."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.compute.servers.states import VmState
from moorage.conductor.agents.agents import Agents
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work

_STATE_AFTER = {"start": VmState.ACTIVE, "stop": VmState.STOPPED, "reboot": VmState.ACTIVE}


class Power:
    """The steps of one kind of power operation."""

    def __init__(self, agents: Agents, kind: str) -> None:
        self._agents = agents
        self._kind = kind

    def steps(self) -> dict[str, Step]:
        return {"begin": self.begin, "done": self.done}

    def begin(self, batch: Sequence[Work]) -> None:
        self._agents.ask(batch, self._kind, then="done", payload=lambda work: dict(work.data))

    def done(self, batch: Sequence[Work]) -> None:
        for work in batch:
            result = work.take_result()
            if result is None:
                if not self._agents.ask_again(work, "begin"):
                    self.give_up(work, "the host did not answer")
            elif result["ok"]:
                work.changes = {
                    "vm_state": _STATE_AFTER[self._kind].value,
                    "task_state": None,
                    "power_state": result["facts"].get("power_state", work.server["power_state"]),
                }
                work.finish()
            else:
                self.give_up(work, result["error"])

    def give_up(self, work: Work, error: str) -> None:
        """The server is what it was; its action says what went wrong."""
        work.changes = {"task_state": None}
        work.fail(error)
