"""Whether something fails now: told once when it begins and once when it ends, however often it is tried."""

from __future__ import annotations

import threading


class Outage:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lasts = False

    def begins(self) -> bool:
        """It failed: whether this is the first time since it last worked."""
        return self._become(True)

    def ends(self) -> bool:
        """It worked: whether it had failed before."""
        return self._become(False)

    def _become(self, lasts: bool) -> bool:
        with self._lock:
            changed, self._lasts = self._lasts != lasts, lasts
            return changed
