"""Asking agents: tasks go out in batches by host, and are asked again when no result comes."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from prometheus_client import Counter

from moorage.bus.contract import ConductorSide, Task
from moorage.conductor.work import Work

LOG = logging.getLogger(__name__)

ASKED_AGAIN = Counter(
    "moorage_conductor_asked_again_total", "Tasks sent again because no result came.", ["kind"]
)
_MOST_ASKS = 20


class Agents:
    def __init__(self, bus: ConductorSide, ask_again_seconds: float = 30.0) -> None:
        self._bus = bus
        self._ask_again_seconds = ask_again_seconds

    def ask(
        self,
        batch: Sequence[Work],
        kind: str,
        *,
        then: str,
        payload: Callable[[Work], dict[str, Any]],
        host: Callable[[Work], str] = lambda work: work.server["host"],
        node_uuid: Callable[[Work], str] = lambda work: work.server["node_uuid"],
    ) -> None:
        """Send each its task, and wait for the result at the step `then`."""
        by_host: dict[str, list[Work]] = defaultdict(list)
        for work in batch:
            by_host[host(work)].append(work)
        for name, works in by_host.items():
            tasks = [
                Task(
                    operation_id=work.operation.id,
                    server_uuid=work.operation.server_uuid,
                    kind=kind,
                    attempt=work.operation.attempt,
                    node_uuid=node_uuid(work),
                    payload=payload(work),
                )
                for work in works
            ]
            try:
                self._bus.cast(name, tasks)
            except Exception as error:
                LOG.warning("%d tasks could not be sent to %s, will try again: %s", len(tasks), name, error)
                for work in works:
                    work.try_again(work.operation.step, 2.0)
                continue
            for work in works:
                work.wait(then, self._ask_again_seconds)

    def ask_again(self, work: Work, step: str) -> bool:
        """No result by the deadline: go back to the step that asks; False once that is pointless."""
        ASKED_AGAIN.labels(work.operation.kind).inc()
        if work.operation.tries >= _MOST_ASKS:
            return False
        work.try_again(step, 0.0)
        return True
