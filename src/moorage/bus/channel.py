"""A bounded queue: one thread of a pool at a time takes all that waits, and hands it over at once."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from moorage.bus.contract import BusError
from moorage.core.elastic_pool import ElasticPool

LOG = logging.getLogger(__name__)
T = TypeVar("T")


class Channel(Generic[T]):
    """Many threads put, one thread delivers; the slower delivery is, the larger its batches grow."""

    def __init__(
        self,
        name: str,
        deliver: Callable[[list[T]], None],
        capacity: int = 10_000,
        patience: float = 5.0,
        pool: ElasticPool | None = None,
    ) -> None:
        self._name = name
        self._deliver = deliver
        self._capacity = capacity
        self._patience = patience
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._pool = pool or ElasticPool(name, size=1)
        self._submitted = False
        self._delivering: threading.Thread | None = None

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
            if not self._submitted:
                self._submitted = True
                self._pool.submit(self._run)

    def close(self, timeout: float = 5.0) -> None:
        """Deliver what is queued, then end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            if threading.current_thread() is not self._delivering:
                self._changed.wait_for(lambda: not self._submitted, timeout)

    def _run(self) -> None:
        while batch := self._take():
            try:
                self._deliver(batch)
            except Exception:
                # What is lost here is asked for again at its operation's deadline.
                LOG.exception("%s: %d messages could not be delivered", self._name, len(batch))

    def _take(self) -> list[T]:
        """All that waits; if that is nothing, the pool is called again for what comes next."""
        with self._changed:
            batch = list(self._items)
            self._items.clear()
            self._submitted = bool(batch)
            self._delivering = threading.current_thread() if batch else None
            self._changed.notify_all()
            return batch
