"""A lock for each server, while somebody wants it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ServerLocks:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, tuple[threading.RLock, int]] = {}

    @contextmanager
    def hold(self, server_uuid: str) -> Iterator[None]:
        with self._lock:
            lock, users = self._held.get(server_uuid, (threading.RLock(), 0))
            self._held[server_uuid] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._held[server_uuid]
                if users == 1:
                    del self._held[server_uuid]
                else:
                    self._held[server_uuid] = (lock, users - 1)
