"""Work that comes again and again, and never twice at the same time."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

from moorage.core.elastic_pool import ElasticPool

LOG = logging.getLogger(__name__)

FIRST_RETRY = 1.0
_LAST_WORDS = 10.0
"""Seconds that one who stops it waits for what is at work."""


class Periodic:
    """Calls `work` every `interval` seconds and whenever woken, in a thread of a pool.

    Work that raises or answers False is tried again after a second, then ever later, up to the interval.
    """

    def __init__(
        self,
        name: str,
        interval: float,
        work: Callable[[], bool | None],
        first_retry: float = FIRST_RETRY,
        longest_retry: float | None = None,
        pool: ElasticPool | None = None,
    ) -> None:
        """An `interval` without end is for work that is done only when woken."""
        self._name = name
        self._interval = interval
        self._work = work
        self._first_retry = self._retry = first_retry
        self._longest_retry = interval if longest_retry is None else longest_retry
        self._pool = pool or ElasticPool(name, size=1)
        self._changed = threading.Condition()
        self._running: threading.Thread | None = None
        self._going = False
        self._due = 0.0
        """When it has to run next."""
        self._submitted = False
        self._alarm: _Alarm | None = None

    def start(self) -> None:
        with self._changed:
            self._going = True
        self.wake()

    def wake(self) -> None:
        with self._changed:
            self._due = 0.0
            self._plan()

    def stop(self) -> None:
        """Waits a while for what is at work, unless that is who stops it."""
        with self._changed:
            self._going = False
            if self._alarm is not None:
                self._alarm.owner = None
                self._alarm = None
            if self._running is not threading.current_thread():
                self._changed.wait_for(lambda: self._running is None, _LAST_WORDS)

    def _plan(self) -> None:
        if not self._going or self._running is not None or self._submitted:
            return
        pause = self._due - time.monotonic()
        if pause <= 0:
            self._submitted = True
            self._pool.submit(self._run)
        elif pause < math.inf and (self._alarm is None or self._alarm.due > self._due):
            self._alarm = _Alarm(self._due, self)
            self._pool.submit_later(pause, self._alarm)

    def on_alarm(self, alarm: _Alarm) -> None:
        with self._changed:
            if self._alarm is alarm:
                self._alarm = None
                self._plan()

    def _run(self) -> None:
        with self._changed:
            self._submitted = False
            if not self._going or self._running is not None:
                return
            self._running = threading.current_thread()
            self._due = math.inf
        pause = self._next_pause(self._succeeds())
        with self._changed:
            self._running = None
            self._changed.notify_all()
            self._due = min(self._due, time.monotonic() + pause)
            self._plan()

    def _next_pause(self, succeeded: bool) -> float:
        if succeeded:
            self._retry = self._first_retry
            return self._interval
        pause, self._retry = min(self._retry, self._longest_retry), self._retry * 2
        return pause

    def _succeeds(self) -> bool:
        try:
            return self._work() is not False
        except Exception:
            LOG.exception("%s failed, will be tried again", self._name)
            return False


class _Alarm:
    """When the pool calls: at the time that is due or before it, since nothing is taken back that was asked
    for. But what was stopped is let go: it may hold much, and its interval may be an hour."""

    def __init__(self, due: float, owner: Periodic) -> None:
        self.due = due
        self.owner: Periodic | None = owner

    def __call__(self) -> None:
        owner = self.owner
        if owner is not None:
            owner.on_alarm(self)
