"""Work that fails is tried again soon, and work that goes well is left alone until its time."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable

from moorage.core.elastic_pool import ElasticPool
from moorage.core.periodic import Periodic
from tests.support.processes import wait_until


class Job:
    def __init__(self, *outcomes: bool | Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.moments: list[float] = []

    def __call__(self) -> bool | None:
        self.moments.append(time.monotonic())
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def pauses(self) -> list[float]:
        return [after - before for before, after in zip(self.moments, self.moments[1:], strict=False)]


def test_failures_are_tried_again_ever_later_and_success_ends_that() -> None:
    job = Job(False, ValueError("boom"), False, None)
    periodic = Periodic("job", 60.0, job, first_retry=0.05)
    periodic.start()
    wait_until(lambda: len(job.moments) == 4, "four tries", 10)
    time.sleep(0.5)
    periodic.stop()
    assert len(job.moments) == 4
    first, second, third = job.pauses()
    assert first >= 0.05
    assert second >= 0.1
    assert third >= 0.2


def test_a_retry_never_waits_longer_than_the_interval() -> None:
    job = Job(*[False] * 8)
    periodic = Periodic("job", 0.05, job, first_retry=10.0)
    periodic.start()
    wait_until(lambda: len(job.moments) >= 4, "four tries", 5)
    periodic.stop()


def test_it_can_be_woken() -> None:
    job = Job()
    periodic = Periodic("job", 60.0, job)
    periodic.start()
    wait_until(lambda: len(job.moments) == 1, "the first call", 5)
    periodic.wake()
    wait_until(lambda: len(job.moments) == 2, "the second call", 5)
    periodic.stop()


class Pool(ElasticPool):
    """Says when it is asked for something later."""

    def __init__(self) -> None:
        super().__init__("job", size=1)
        self.asked = threading.Event()

    def submit_later(self, seconds: float, job: Callable[[], object]) -> None:
        super().submit_later(seconds, job)
        self.asked.set()


def test_what_was_stopped_keeps_nothing_of_what_it_worked_for() -> None:
    job, pool = Job(), Pool()
    periodic = Periodic("job", 3600.0, job, pool=pool)
    periodic.start()
    assert pool.asked.wait(10)
    periodic.stop()
    kept = weakref.ref(job)
    del job, periodic

    def gone() -> bool:
        gc.collect()
        return kept() is None

    wait_until(gone, "the job to be let go", 5)
