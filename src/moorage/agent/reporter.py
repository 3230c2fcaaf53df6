"""Results on their way to the conductors: written down, sent in batches, sent again until they are taken."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from prometheus_client import Counter

from moorage.agent.journal import Journal, JournalUnwritableError
from moorage.bus.contract import Result, Task
from moorage.core.elastic_pool import ElasticPool
from moorage.core.periodic import Periodic

LOG = logging.getLogger(__name__)

FAILURES = Counter("moorage_agent_report_failures_total", "Batches of results that the bus did not take.")
_LONGEST_PAUSE = 15.0


class Reporter:
    def __init__(
        self,
        journal: Journal,
        send: Callable[[list[Result]], None],
        first_pause: float = 0.2,
        pool: ElasticPool | None = None,
    ) -> None:
        self._journal = journal
        self._send = send
        self._finished: deque[tuple[Task, Result]] = deque()
        self._again: deque[Result] = deque()
        self._batch: list[Result] = []
        """What the bus has not taken yet."""
        self._tries = Periodic(
            "results", math.inf, self._deliver, first_pause, longest_retry=_LONGEST_PAUSE, pool=pool
        )

    def start(self) -> None:
        """Report first what an earlier life of this agent could not."""
        self._again.extend(self._journal.unreported())
        self._tries.start()

    def finished(self, task: Task, result: Result) -> None:
        self._finished.append((task, result))
        self._tell()

    def repeat(self, results: list[Result]) -> None:
        """Say again what was said before: somebody asks for it."""
        self._again.extend(results)
        self._tell()

    def _tell(self) -> None:
        """At once, unless the bus did not take what came before: then it has its pause."""
        if not self._batch:
            self._tries.wake()

    def stop(self) -> None:
        """What is not sent by now stays in the journal, for the next start; what is not even there is done
        once more then."""
        self._tries.stop()
        with suppress(JournalUnwritableError):
            self._gather()

    def _gather(self) -> list[Result]:
        finished = [self._finished.popleft() for _ in range(len(self._finished))]
        try:
            current = self._journal.finish(finished) if finished else []
        except JournalUnwritableError:
            self._finished.extendleft(reversed(finished))  # what is done is not told before it is kept
            raise
        again = [self._again.popleft() for _ in range(len(self._again))]
        return again + current

    def _deliver(self) -> bool:
        """Whether nothing is left to say; what can't be kept, or sent, is tried again."""
        try:
            return self._deliver_all()
        except JournalUnwritableError:
            return False

    def _deliver_all(self) -> bool:
        """What is finished in the meantime goes along."""
        while True:
            self._batch += self._gather()
            if not self._batch:
                return True
            try:
                self._send(self._batch)
            except Exception as error:
                FAILURES.inc()
                LOG.warning("%d results can't be reported, and are tried again: %s", len(self._batch), error)
                return False
            self._journal.reported(self._batch)
            self._batch = []
