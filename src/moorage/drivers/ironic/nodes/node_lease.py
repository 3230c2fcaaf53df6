"""What a host was told to keep, and how long it may rely on that without hearing anything new.

A process that was stopped, or a machine that slept, believes what was true before. So it says itself until
when it counts as alive: after that nothing is kept until somebody has said so again.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable

from moorage.core.clock import uptime


class NodeLease:
    def __init__(self, clock: Callable[[], float] = uptime) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._kept: frozenset[str] | None = None
        self._until = math.inf
        self._closed = False

    def keep(self, uuids: Iterable[str]) -> None:
        """These, and no others."""
        with self._changed:
            self._kept = frozenset(uuids)
            self._changed.notify_all()

    def extend_lease(self, until: float) -> None:
        """By the clock that goes on while nothing else does."""
        with self._changed:
            self._until = until
            self._changed.notify_all()

    def all(self) -> frozenset[str]:
        """Whether or not it may be relied on right now."""
        with self._changed:
            return self._kept or frozenset()

    def was_told(self) -> bool:
        """Whether anybody has ever said what is ours."""
        with self._changed:
            return self._kept is not None

    def has_lost(self, uuid: str) -> bool:
        """Whether we know that it is not ours."""
        with self._changed:
            return self._kept is not None and uuid not in self._kept

    def has(self, uuid: str, patience: float) -> bool:
        """Waits a while if that is not known: after a start, or a stop, we have to be told."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._is_known(), patience)
            return self._is_known() and uuid in (self._kept or ())

    def close(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _is_known(self) -> bool:
        return self._kept is not None and self._clock() < self._until
