"""A bounded queue with one thread at its end, which takes all that waits and hands it over at once."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from moorage.bus.contract import BusError

LOG = logging.getLogger(__name__)
T = TypeVar("T")


class Channel(Generic[T]):
    """Many threads put, one thread delivers; the slower delivery is, the larger its batches grow."""

    def __init__(
        self, name: str, deliver: Callable[[list[T]], None], capacity: int = 10_000, patience: float = 5.0
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._capacity = capacity
        self._patience = patience
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def put(self, items: Iterable[T]) -> None:
        """Queue `items`, all or none; waits a bounded time for room, then raises."""
        batch = list(items)
        deadline = time.monotonic() + self._patience
        with self._changed:
            while not self._closed and self._items and len(self._items) + len(batch) > self._capacity:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise BusError(f"{self._name} is full ({len(self._items)} messages wait)")
            if self._closed:
                raise BusError(f"{self._name} is closed")
            self._items.extend(batch)
            self._changed.notify_all()

    def close(self, timeout: float = 5.0) -> None:
        """Deliver what is queued, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout)

    def _run(self) -> None:
        while batch := self._take():
            try:
                self._deliver(batch)
            except Exception:
                # What is lost here is asked for again at its operation's deadline.
                LOG.exception("%s: %d messages could not be delivered", self._name, len(batch))

    def _take(self) -> list[T]:
        """All that waits; empty only when the channel is closed."""
        with self._changed:
            while not self._items and not self._closed:
                self._changed.wait()
            batch = list(self._items)
            self._items.clear()
            self._changed.notify_all()
            return batch
