"""How often a line is written that somebody else can cause: not so often that the log fills up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

_PAUSE = 10.0


class Pauses:
    """Lets one through in ten seconds for each key, which then says how many were kept back before it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._told: dict[Hashable, tuple[float, int]] = {}

    def passes(self, key: Hashable) -> int | None:
        """How many were kept back since the last one; None if this one is kept back, too."""
        now = self._clock()
        with self._lock:
            last, silent = self._told.get(key, (-_PAUSE, 0))
            if now - last < _PAUSE:
                self._told[key] = (last, silent + 1)
                return None
            self._told[key] = (now, 0)
            return silent
