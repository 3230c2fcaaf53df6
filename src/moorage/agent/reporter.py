"""Results on their way to the conductors: written down, sent in batches, sent again until they are taken."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from prometheus_client import Counter

from moorage.agent.journal import Journal
from moorage.bus.contract import Result, Task

LOG = logging.getLogger(__name__)

FAILURES = Counter("moorage_agent_report_failures_total", "Batches of results that the bus did not take.")
_LONGEST_PAUSE = 15.0


class Reporter:
    def __init__(
        self, journal: Journal, send: Callable[[list[Result]], None], first_pause: float = 0.2
    ) -> None:
        self._journal = journal
        self._send = send
        self._first_pause = first_pause
        self._finished: deque[tuple[Task, Result]] = deque()
        self._again: deque[Result] = deque()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="results", daemon=True)

    def start(self) -> None:
        """Report first what an earlier life of this agent could not."""
        self._again.extend(self._journal.unreported())
        self._wake.set()
        self._thread.start()

    def finished(self, task: Task, result: Result) -> None:
        self._finished.append((task, result))
        self._wake.set()

    def repeat(self, results: list[Result]) -> None:
        """Say again what was said before: somebody asks for it."""
        self._again.extend(results)
        self._wake.set()

    def stop(self) -> None:
        """What is not sent by now stays in the journal, for the next start."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._wake.clear()
            if batch := self._gather():
                self._deliver(batch)
        self._gather()

    def _gather(self) -> list[Result]:
        finished = [self._finished.popleft() for _ in range(len(self._finished))]
        again = [self._again.popleft() for _ in range(len(self._again))]
        return again + (self._journal.finish(finished) if finished else [])

    def _deliver(self, batch: list[Result]) -> None:
        """Send, as often as it takes; what is finished in the meantime goes along."""
        pause = self._first_pause
        while True:
            try:
                self._send(batch)
            except Exception as error:
                FAILURES.inc()
                LOG.warning("%d results can't be reported, next try in %.1f s: %s", len(batch), pause, error)
                if self._stopping.wait(pause):
                    return
                pause = min(pause * 2, _LONGEST_PAUSE)
                batch += self._gather()
            else:
                self._journal.reported(batch)
                return
