"""Asking agents: tasks go out in batches by host, and are asked again when no result comes."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from prometheus_client import Counter

from moorage.bus.contract import DISCARD, ConductorSide, Task
from moorage.conductor.engine.work import Done, Failed, S, Silent, Work

LOG = logging.getLogger(__name__)

ASKED_AGAIN = Counter(
    "moorage_conductor_asked_again_total", "Tasks sent again because no result came.", ["kind"]
)
SEND_FAILURES = Counter(
    "moorage_conductor_send_failures_total", "Batches of tasks that the bus did not take."
)
_MOST_ASKS = 20
_BUS_PAUSE_SECONDS = 2.0


class Agents:
    def __init__(self, bus: ConductorSide, ask_again_seconds: float = 30.0) -> None:
        self._bus = bus
        self._ask_again_seconds = ask_again_seconds

    def ask(
        self,
        batch: Sequence[Work[Any]],
        kind: str,
        *,
        then: str,
        payload: Callable[[Work[Any]], dict[str, Any]],
        host: Callable[[Work[Any]], str] = lambda work: work.server.host or "",
        node_uuid: Callable[[Work[Any]], str] = lambda work: work.server.node_uuid or "",
    ) -> None:
        """Send each its task, and wait for the result at the step `then`."""
        by_host: dict[str, list[Work[Any]]] = defaultdict(list)
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
                    permit=True,
                    secrets=work.operation.secrets or {},
                    request_ids=work.context.request_ids,
                    project_id=work.server.project_id,
                )
                for work in works
            ]
            try:
                self._bus.cast(name, tasks)
            except Exception as error:
                SEND_FAILURES.inc()
                LOG.warning("%d tasks can't be sent to %s, next try in 2 s: %s", len(tasks), name, error)
                for work in works:  # the host is not to blame, so this is not counted as an answer it owes
                    work.wait(work.operation.step, _BUS_PAUSE_SECONDS)
                continue
            for work in works:
                work.wait(then, self._ask_again_seconds)

    def leave(self, batch: Sequence[Work[Any]]) -> None:
        """Hosts that servers leave shall keep nothing of them, whatever they had come to.

        One that does not hear of it says sooner or later what it has, and is told again then.
        """
        by_host: dict[str, list[Task]] = defaultdict(list)
        for work in batch:
            if work.server.host is not None:
                by_host[work.server.host].append(_word(work, DISCARD))
        for name, tasks in by_host.items():
            try:
                self._bus.cast(name, tasks)
            except Exception as error:
                SEND_FAILURES.inc()
                LOG.warning("%s could not be told to discard %d servers: %s", name, len(tasks), error)

    def answers(
        self, batch: Sequence[Work[S]], step: str, *, patient: Callable[[Work[S]], bool] = lambda _work: True
    ) -> Iterator[tuple[Work[S], Done | Failed | Silent]]:
        """What came of the tasks that `step` gave.

        Who did not answer is asked again by that step, as long as there is a point in it and it is `patient`;
        only then it is told here that nothing was heard.
        """
        for work in batch:
            answer = work.answer()
            if isinstance(answer, Silent) and patient(work) and self.ask_again(work, step):
                continue
            yield work, answer

    def ask_again(self, work: Work[Any], step: str) -> bool:
        """No result by the deadline: go back to the step that asks; False once that is pointless."""
        ASKED_AGAIN.labels(work.operation.kind).inc()
        if work.operation.tries >= _MOST_ASKS:
            return False
        work.try_again(step, 0.0)
        return True

    def signal(self, work: Work[Any], host: str, kind: str) -> None:
        """Tell an agent something that it need not answer: if it can't be told now, a later look does."""
        try:
            self._bus.cast(host, [_word(work, kind)])
        except Exception as error:
            LOG.info("%s could not be told to %s: %s", host, kind, error)

    def discard(self, work: Work[Any], host: str) -> None:
        """Tell an agent that it should not have the server; one that is away is told when it comes back."""
        self.signal(work, host, DISCARD)


def _word(work: Work[Any], kind: str) -> Task:
    """What a host is told without being asked for an answer; its log knows whose work it is."""
    operation = work.operation
    return Task(
        operation.id,
        operation.server_uuid,
        kind,
        operation.attempt,
        "",
        request_ids=work.context.request_ids,
        project_id=work.server.project_id,
    )
