"""Work that comes again and again, in a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

LOG = logging.getLogger(__name__)


class Periodic:
    """Calls `work` every `interval` seconds and whenever woken; a failure is logged, and tried again."""

    def __init__(self, name: str, interval: float, work: Callable[[], None]) -> None:
        self._name = name
        self._interval = interval
        self._work = work
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
        while not self._stopping:
            try:
                self._work()
            except Exception:
                LOG.exception("%s failed, next try in %.1f s", self._name, self._interval)
            self._wake.wait(self._interval)
            self._wake.clear()
