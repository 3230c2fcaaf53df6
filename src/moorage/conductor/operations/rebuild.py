"""Rebuild: a server is made anew where it is, from the same image or another one.

    begin (may the image run there?) → rebuild → rebuilt

The server keeps its place and its allocations, so nothing is claimed: a new image is held against the one
node that it has to run on, whatever room is left there. The image that it has is not: it runs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moorage.compute.servers import actions
from moorage.compute.servers.actions import Event
from moorage.compute.servers.fault import fault
from moorage.compute.servers.states import TaskState, VmState
from moorage.conductor.agents import server_spec
from moorage.conductor.agents.agents import Agents
from moorage.conductor.engine.runner import Step
from moorage.conductor.engine.work import Work
from moorage.conductor.placing.fitness import Fitness
from moorage.deciding.hosts import Hosts

_EVENT = "compute_rebuild_instance"


class Rebuild:
    def __init__(self, agents: Agents, hosts: Hosts, fitness: Fitness) -> None:
        self._agents = agents
        self._hosts = hosts
        self._fitness = fitness

    def steps(self) -> dict[str, Step]:
        return {"begin": self.begin, "rebuild": self.rebuild, "rebuilt": self.rebuilt}

    def begin(self, batch: Sequence[Work]) -> None:
        for work in batch:
            objection = self._fitness.objection(work.server) if work.data["new_image"] else None
            if objection is not None:
                self._leave_as_it_was(work, objection)
                continue
            work.changes["task_state"] = TaskState.REBUILD_SPAWNING.value
            work.advance("rebuild")

    def rebuild(self, batch: Sequence[Work]) -> None:
        up = self._hosts.up()
        for work in batch:
            if work.server["host"] not in up:
                self._leave_as_it_was(work, "the host of the server is down")
        self._agents.ask(
            [work for work in batch if work.server["host"] in up],
            "rebuild",
            then="rebuilt",
            payload=lambda work: {"spec": server_spec.of(work.server, power_on=work.data["runs"])},
        )

    def rebuilt(self, batch: Sequence[Work]) -> None:
        for work in batch:
            result = work.take_result()
            if result is None:
                if not self._agents.ask_again(work, "rebuild"):
                    self.give_up(work, "the host did not answer")
            elif result["ok"]:
                work.changes = {
                    "vm_state": (VmState.ACTIVE if work.data["runs"] else VmState.STOPPED).value,
                    "task_state": None,
                    "power_state": result["facts"]["power_state"],
                    "fault": None,
                }
                self._note(work)
                work.finish()
            else:
                self.give_up(work, result["error"])

    def give_up(self, work: Work, error: str) -> None:
        """What is on its disk now is not known."""
        work.changes = {"vm_state": VmState.ERROR.value, "task_state": None, "fault": fault(error)}
        self._note(work, error)
        work.fail(error)

    def _leave_as_it_was(self, work: Work, error: str) -> None:
        """Nothing was done to the server yet, so it has what it had."""
        before: dict[str, Any] = work.data["before"]
        work.changes = {**before, "task_state": None, "fault": fault(error)}
        self._note(work, error)
        work.fail(error)

    def _note(self, work: Work, error: str | None = None) -> None:
        event = Event(work.operation.action_id, _EVENT, work.server["host"], error)
        work.write_together(actions.add_events, event)
