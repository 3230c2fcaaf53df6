"""A pool of threads: a few do all that is short, and what takes long costs nobody else a turn.

A process with a thousand hosts must not have thousands of threads, and one host whose machine hangs must not
stop the others. So a thread that has been at one job for longer than `patience` is no longer counted: if
others wait, another one takes its place. Threads that nobody needs end by themselves.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

LOG = logging.getLogger(__name__)

T = TypeVar("T")
Job = Callable[[], object]
LINGER = 10.0
"""Seconds that a thread without work waits for more."""
_PAUSE = 0.05
"""Between two tries to get a thread from a system that has none to give."""


class ElasticPool:
    def __init__(self, name: str, size: int = 16, patience: float = 1.0) -> None:
        """`size` threads at most, but for those that have been at one job for `patience` seconds."""
        self._name = name
        self._size = size
        self._patience = patience
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._watch = threading.Condition(self._lock)
        self._waiting: deque[Job] = deque()
        self._later: list[tuple[float, int, Job]] = []
        """A heap, by the time that each is due."""
        self._idle = 0
        self._counted = 0
        """Threads that wait for work, or have not been at theirs for long."""
        self._begun: dict[threading.Thread, float] = {}
        """When the counted threads that are at work began, the earliest first."""
        self._watched = False

    def submit(self, job: Job) -> None:
        with self._lock:
            self._enqueue(job)

    def call(self, work: Callable[[], T]) -> Future[T]:
        """As `submit`, for work whose outcome somebody waits for."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except Exception as error:
                future.set_exception(error)

        self.submit(run)
        return future

    def submit_later(self, seconds: float, job: Job) -> None:
        with self._lock:
            heapq.heappush(self._later, (time.monotonic() + seconds, next(self._numbers), job))
            self._look()

    def _enqueue(self, job: Job) -> None:
        self._waiting.append(job)
        if len(self._waiting) <= self._idle:
            self._work.notify()
        elif self._counted >= self._size:
            self._look()
        elif not self._add_thread() and not self._counted:
            self._waiting.pop()
            raise RuntimeError(f"there is no thread for {self._name}")

    def _add_thread(self) -> bool:
        """If the system has none to give, those that there are do the work."""
        try:
            self._thread(self._run)
        except RuntimeError:
            LOG.warning("%s gets no more threads than %d", self._name, self._counted)
            return False
        self._counted += 1
        return True

    def _look(self) -> None:
        """Have somebody see to what is due later, and to those that wait because all are at work."""
        if self._watched:
            self._watch.notify()
        else:
            self._watched = True
            self._thread(self._supervise)

    def _thread(self, target: Callable[[], None]) -> None:
        name = f"{self._name}-{next(self._numbers)}"
        threading.Thread(target=target, name=name, daemon=True).start()

    def _run(self) -> None:
        me = threading.current_thread()
        while True:
            with self._lock:
                while not self._waiting:
                    self._idle += 1
                    woken = self._work.wait(LINGER)
                    self._idle -= 1
                    if not woken and not self._waiting:
                        self._counted -= 1
                        return
                job = self._waiting.popleft()
                self._begun[me] = time.monotonic()
            try:
                job()
            except Exception:
                LOG.exception("a job of %s failed", self._name)
            del job  # what it holds is not kept while we wait for the next one
            with self._lock:
                if self._begun.pop(me, None) is None:  # somebody may have taken our place
                    if self._counted >= self._size:
                        return
                    self._counted += 1

    def _supervise(self) -> None:
        with self._lock:
            while True:
                now = time.monotonic()
                while self._later and self._later[0][0] <= now:
                    self._enqueue(heapq.heappop(self._later)[2])
                while len(self._waiting) > self._idle and self._replace_one(now):
                    pass
                if not self._watch.wait(self._next_look(now)) and self._is_quiet():
                    self._watched = False
                    return

    def _replace_one(self, now: float) -> bool:
        """Somebody waits: whether another thread takes the place of one that has been at work for long."""
        for thread, began in self._begun.items():
            if began + self._patience > now:
                return False
            if not self._add_thread():
                return False
            del self._begun[thread]
            self._counted -= 1
            return True
        return False

    def _next_look(self, now: float) -> float:
        moments = [self._later[0][0]] if self._later else []
        if len(self._waiting) > self._idle:  # new threads may not have begun yet
            earliest = next(iter(self._begun.values()), now) + self._patience
            moments.append(max(earliest, now + _PAUSE))
        return max(0.0, min(moments) - now) if moments else LINGER

    def _is_quiet(self) -> bool:
        return not self._later and len(self._waiting) <= self._idle


class PoolShare:
    """One host's part of a pool: at most `most` of its jobs are under way, the others wait in order."""

    def __init__(self, pool: ElasticPool, most: int) -> None:
        self._pool = pool
        self._most = most
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._under_way = 0
        self._closed = False

    def submit(self, job: Job) -> bool:
        """False if it is closed, so that the job is not done."""
        with self._changed:
            if self._closed:
                return False
            if self._under_way >= self._most:
                self._waiting.append(job)
                return True
            self._under_way += 1
        self._pool.submit(lambda: self._run(job))
        return True

    def close(self) -> None:
        """Begin nothing more, and wait until what is at work has ended."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.wait_for(lambda: self._under_way == 0)

    def _run(self, job: Job) -> None:
        try:
            if not self._closed:
                job()
        finally:
            self._go_on()

    def _go_on(self) -> None:
        """The next one queues up behind the others' jobs, so that all hosts get their turn."""
        with self._changed:
            if not self._waiting:
                self._under_way -= 1
                self._changed.notify_all()
                return
            job = self._waiting.popleft()
        self._pool.submit(lambda: self._run(job))
