"""How a process ends: politely if it can, by force when its grace period is over; SIGHUP ends none.

A signal handler of Python's runs in the main thread, when that gets to it, and that may be deep in a call.
So signals are written to a pipe, which a thread of its own reads.
"""

from __future__ import annotations

import logging
import os
import queue
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

LOG = logging.getLogger(__name__)

_LAST = (signal.SIGTERM, signal.SIGINT)
FORCED = 1
"""What a process leaves with that had to be ended by force."""


def ignore_hangup() -> None:
    """For a process that is about to start, and has nothing to read anew."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _nothing_to_read() -> None:
    LOG.info("SIGHUP: there is nothing to read anew; a restart takes up a changed configuration")


class Shutdown:
    """From its making on, SIGTERM and SIGINT end the process within `grace_seconds`, whatever it is at."""

    def __init__(self, grace_seconds: float, by_force: Callable[[], None] = lambda: None) -> None:
        """`by_force` is called last of all, before the process ends without a further word."""
        self._grace_seconds = grace_seconds
        self._by_force = by_force
        self._signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._asked_at: float | None = None
        self._by_manager = False
        """Not at a terminal."""
        self._reads, self._writes = socket.socketpair()
        self._writes.setblocking(False)

    def listen(self, *, handle: bool = True) -> None:
        """Called in the main thread. Without `handle`, others have handlers, and we only keep time."""
        if handle:
            for number in (*_LAST, signal.SIGHUP):
                signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._writes.fileno(), warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
        threading.Thread(target=self._watch, name="signals", daemon=True).start()

    def wait(self, on_hangup: Callable[[], None] = _nothing_to_read) -> None:
        """Until the process is asked to end."""
        while (number := self._signals.get()) not in _LAST:
            if number == signal.SIGHUP:
                try:
                    on_hangup()
                except Exception:
                    LOG.exception("SIGHUP: what changed can't be taken up, and everything stays as it was")
        self._by_manager = number == signal.SIGTERM

    def drain(self, seconds: float) -> None:
        """After `wait`, give those who watch us the time to see that we end: not after Control-C, and not
        beyond a second signal."""
        deadline = time.monotonic() + min(seconds, self._grace_seconds / 2)
        while self._by_manager and (left := deadline - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._by_manager = self._signals.get(timeout=left) not in _LAST

    @property
    def seconds_left(self) -> float:
        """Of the grace period."""
        if self._asked_at is None:
            return self._grace_seconds
        return max(0.0, self._asked_at + self._grace_seconds - time.monotonic())

    def _watch(self) -> None:
        while number := self._reads.recv(1):
            self._signals.put(number[0])
            if number[0] in _LAST and self._asked_at is None:
                self._asked_at = time.monotonic()
                threading.Thread(target=self._count_down, name="grace", daemon=True).start()

    def _count_down(self) -> None:
        time.sleep(self._grace_seconds)
        at_work = sorted(thread.name for thread in threading.enumerate() if thread.is_alive())
        LOG.error(
            "this process did not end within %g s, and is ended by force; its threads: %s",
            self._grace_seconds,
            ", ".join(at_work),
        )
        self._by_force()
        os._exit(FORCED)
