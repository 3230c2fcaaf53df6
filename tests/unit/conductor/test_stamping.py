"""What a conductor says and hears is of the era of its database."""

from __future__ import annotations

from moorage.bus.contract import Result, Task
from moorage.bus.local import LocalBus
from moorage.conductor.agents.stamping import StampingConductorSide
from moorage.db.era import Era, KnownEra
from tests.support.processes import wait_until


class _Fixed(KnownEra):
    def __init__(self, number: int) -> None:
        self._known = Era(number)


def test_tasks_name_the_era_and_results_of_another_are_ignored() -> None:
    bus = LocalBus()
    side = StampingConductorSide(bus.conductor_side(), _Fixed(100))
    got: list[Task] = []
    heard: list[int] = []
    bus.attach_agent("host", got.extend)
    side.receive(lambda results: heard.extend(result.operation_id for result in results), lambda _beat: None)
    side.cast("host", [Task(1, "server", "stop", 1, "node")])
    wait_until(lambda: [task.era for task in got] == [100], "the task", 10)
    eras = {1: 99, 2: 101, 3: 100, 4: 0}
    bus.send_results([Result(number, "server", 1, ok=True, era=era) for number, era in eras.items()])
    wait_until(lambda: heard == [3, 4], "results of this era, and of agents that know none", 10)
    bus.send_results([Result(5, "server", 1, ok=True, era=99)])
    bus.send_results([Result(6, "server", 1, ok=True, era=100)])
    wait_until(lambda: heard == [3, 4, 6], "the last one", 10)
    side.close()
    bus.detach_agent("host")
