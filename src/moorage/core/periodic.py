"""Work that comes again and again, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

LOG = logging.getLogger(__name__)

FIRST_RETRY = 1.0


class Periodic:
    """Calls `work` every `interval` seconds and whenever woken.

    Work that raises or answers False is tried again after a second, then ever later, up to the interval.
    """

    def __init__(
        self, name: str, interval: float, work: Callable[[], bool | None], first_retry: float = FIRST_RETRY
    ) -> None:
        self._name = name
        self._interval = interval
        self._work = work
        self._first_retry = first_retry
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        retry = self._first_retry
        while not self._stopping:
            if self._succeeds():
                pause, retry = self._interval, self._first_retry
            else:
                pause, retry = min(retry, self._interval), retry * 2
            self._wake.wait(pause)
            self._wake.clear()

    def _succeeds(self) -> bool:
        try:
            return self._work() is not False
        except Exception:
            LOG.exception("%s failed, will be tried again", self._name)
            return False
