"""How long a conductor has been listening without a break: only then does silence mean that a host is down.

After an outage of the conductors, the database or the broker every host was silent. Whoever is heard first
must not get the nodes of all others for that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

_FOR_EVER = timedelta(days=3650)


class ListeningPeriod:
    def __init__(self, down_time: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.down_time = down_time
        """Seconds after which a host that is silent counts as down."""
        self._clock = clock
        self._lock = threading.Lock()
        self._since = self._heard = clock()

    def heard(self) -> None:
        """Some host sent a heartbeat. If none did for long, it was not the hosts that were away."""
        now = self._clock()
        with self._lock:
            if now - self._heard > self.down_time / 2:
                self._since = now
            self._heard = now

    def interrupted(self) -> None:
        """What was said meanwhile could not be written down."""
        with self._lock:
            self._since = self._clock()

    def down_after(self) -> timedelta:
        """How long a host has to be silent before it counts as down."""
        with self._lock:
            listened = self._clock() - self._since
        return timedelta(seconds=self.down_time) if listened >= self.down_time else _FOR_EVER
