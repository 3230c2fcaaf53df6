"""A pool of threads that many share: few of them, and nobody waits for a job that hangs."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from moorage.core import elastic_pool
from moorage.core.elastic_pool import ElasticPool, PoolShare
from moorage.core.periodic import Periodic
from tests.support.processes import wait_until


class Hanging:
    """Jobs that end when the test does."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()

    def __call__(self) -> None:
        self.begun.release()
        self.go_on.wait(60)

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.begun.acquire(timeout=30)


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    jobs = Hanging()
    yield jobs
    jobs.go_on.set()


def threads_of(name: str) -> int:
    return sum(thread.name.startswith(f"{name}-") for thread in threading.enumerate())


def test_many_short_jobs_need_few_threads() -> None:
    pool, done = ElasticPool("short", size=3, patience=60), threading.Semaphore(0)
    for _ in range(500):
        pool.submit(done.release)
    for _ in range(500):
        assert done.acquire(timeout=30)
    assert threads_of("short") <= 4, "three, and one that looks after them"


def test_jobs_that_hang_cost_the_others_no_turn(hanging: Hanging) -> None:
    pool, done = ElasticPool("hang", size=2, patience=0.05), threading.Event()
    for _ in range(20):
        pool.submit(hanging)
    hanging.wait_for(20)
    pool.submit(done.set)
    assert done.wait(30)


def test_threads_that_took_the_place_of_others_go_again(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elastic_pool, "LINGER", 0.05)
    pool = ElasticPool("going", size=2, patience=0.01)
    for _ in range(10):
        pool.submit(hanging)
    hanging.wait_for(10)
    hanging.go_on.set()
    wait_until(lambda: threads_of("going") == 0, "idle threads to end", 30)
    done = threading.Event()
    pool.submit_later(0.01, done.set)
    assert done.wait(30), "others come when they are needed"


def test_a_job_that_fails_ends_no_thread() -> None:
    pool, done = ElasticPool("failing", size=1), threading.Event()

    def fail() -> None:
        raise ValueError("no")

    pool.submit(fail)
    pool.submit(done.set)
    assert done.wait(30)


def test_without_another_thread_those_that_there_are_do_the_work(
    monkeypatch: pytest.MonkeyPatch, hanging: Hanging
) -> None:
    pool = ElasticPool("full", size=4)
    pool.submit(hanging)
    hanging.wait_for(1)

    def none_left(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    done = threading.Event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_left)
        pool.submit(done.set)
        with pytest.raises(RuntimeError, match="no thread for empty"):
            ElasticPool("empty").submit(done.set)
        hanging.go_on.set()
        assert done.wait(30)
    after = threading.Event()
    pool.submit(after.set)
    assert after.wait(30)


def test_later_jobs_come_in_the_order_of_their_time() -> None:
    pool, done = ElasticPool("later", size=1), threading.Event()
    order: list[str] = []
    pool.submit_later(0.2, done.set)
    pool.submit_later(0.1, lambda: order.append("second"))
    pool.submit_later(0.01, lambda: order.append("first"))
    assert done.wait(30)
    assert order == ["first", "second"]


def test_one_host_has_no_more_than_its_share(hanging: Hanging) -> None:
    pool = ElasticPool("share", size=1, patience=0.01)
    greedy, modest, done = PoolShare(pool, 3), PoolShare(pool, 3), threading.Event()
    for _ in range(10):
        greedy.submit(hanging)
    hanging.wait_for(3)
    modest.submit(done.set)
    assert done.wait(30)
    assert not hanging.begun.acquire(timeout=0.2), "seven wait for their turn"
    hanging.go_on.set()
    hanging.wait_for(7)


def test_a_share_that_is_closed_waits_for_what_is_at_work_and_begins_nothing_more(hanging: Hanging) -> None:
    share = PoolShare(ElasticPool("closing", size=4), 1)
    share.submit(hanging)
    share.submit(hanging)
    hanging.wait_for(1)
    closing = threading.Thread(target=share.close)
    closing.start()
    assert closing.is_alive()
    wait_until(lambda: not share.submit(hanging), "it to be closed", 30)
    hanging.go_on.set()
    closing.join(30)
    assert not closing.is_alive()
    assert not hanging.begun.acquire(blocking=False)


def test_what_is_woken_often_is_planned_once() -> None:
    """A plan is not taken back: each wake that left another one behind would fill the memory."""
    pool = ElasticPool("woken", size=2)
    runs = threading.Semaphore(0)
    periodic = Periodic("woken", 3600.0, runs.release, pool=pool)
    periodic.start()
    for _ in range(50):
        assert runs.acquire(timeout=30)
        periodic.wake()
    periodic.stop()
    assert len(pool._later) <= 1


def test_one_that_hangs_does_not_stop_the_beats_of_others(hanging: Hanging) -> None:
    pool = ElasticPool("beats", size=1, patience=0.05)
    beats = threading.Semaphore(0)
    stuck = Periodic("stuck", 0.01, hanging, pool=pool)
    lively = Periodic("lively", 0.01, beats.release, pool=pool)
    stuck.start()
    hanging.wait_for(1)
    lively.start()
    for _ in range(5):
        assert beats.acquire(timeout=30)
    lively.stop()
    hanging.go_on.set()
    stuck.stop()
