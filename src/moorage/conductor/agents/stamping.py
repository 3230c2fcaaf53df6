"""The bus, as a conductor of one era of the database uses it: what it says and hears is of that era."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec
from prometheus_client import Counter

from moorage.bus.contract import ConductorSide, Heartbeat, Result, Task
from moorage.db.era import KnownEra

LOG = logging.getLogger(__name__)

VOID = Counter(
    "moorage_conductor_void_results_total", "Results of tasks from before a restore of the database, ignored."
)


class StampingConductorSide:
    """Late: a task of a conductor that slept through a restore names the era before, and agents ignore it."""

    def __init__(self, bus: ConductorSide, era: KnownEra) -> None:
        self._bus = bus
        self._era = era

    def cast(self, host: str, tasks: list[Task]) -> None:
        number = self._era.number
        self._bus.cast(host, [msgspec.structs.replace(task, era=number) for task in tasks])

    def receive(
        self, on_results: Callable[[list[Result]], None], on_heartbeat: Callable[[Heartbeat], None]
    ) -> None:
        def of_this_era(results: list[Result]) -> None:
            found = [result for result in results if result.era in (0, self._era.number)]
            if len(found) < len(results):
                VOID.inc(len(results) - len(found))
                LOG.info("%d results are of another era of the database", len(results) - len(found))
            if found:
                on_results(found)

        self._bus.receive(of_this_era, on_heartbeat)

    def close(self) -> None:
        self._bus.close()
