"""How long an agent may rely on what it owns: as long as it surely counts as alive.

Its nodes go to others only after it has been silent for a while. An agent that was stopped, or whose machine
slept, does not know that it was: so it reckons from its last heartbeat, by a clock that goes on meanwhile.
Once it was silent for too long, it relies on nothing before a conductor has answered what it asked since.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from moorage.core.clock import uptime

LOG = logging.getLogger(__name__)

_SHARE = 0.5
"""Of the lease that we use: what we order takes its time to arrive."""


class OwnershipLease:
    def __init__(self, extend: Callable[[float], None], clock: Callable[[], float] = uptime) -> None:
        """`extend` is told until when what we own may be relied on."""
        self._extend_driver = extend
        self._clock = clock
        self._lock = threading.Lock()
        self._seconds = 0.0
        """0 as long as no conductor has said it: then there is no end to it."""
        self._until = 0.0
        self._began = 0.0
        """When the last heartbeat was begun."""
        self._beaten = 0.0
        """When the last one was begun that was taken."""
        self._lapsed = False
        self._question = 0
        self._asked: dict[int, float] = {}
        """When what we own was asked, by the number of the question; since a lapse, only what counts."""

    def about_to_beat(self) -> bool:
        """Whether we were silent for too long, and nobody has told us yet what we own."""
        with self._lock:
            self._began = self._clock()
            if self._seconds > 0 and not self._lapsed and self._began >= self._until:
                LOG.warning("no heartbeat for too long: nothing is changed until it is told what is ours")
                self._lapsed = True
                self._asked.clear()
            return self._lapsed

    def has_beaten(self) -> None:
        with self._lock:
            self._beaten = self._began
            if self._seconds > 0 and not self._lapsed:
                self._extend(self._began)

    def ask(self) -> int:
        """The number of the question what we own; only its answer ends a lapse."""
        with self._lock:
            self._question += 1
            self._asked[self._question] = self._began
            return self._question

    def is_news(self, answer: int) -> bool:
        """Whether a word about all that we own is not the answer to what we asked before we were silent."""
        with self._lock:
            return not self._lapsed or answer == 0 or answer in self._asked

    def learn(self, seconds: float, answer: int) -> None:
        """From a word; `answer` is 0 if it is none."""
        with self._lock:
            first = seconds > 0 and self._seconds == 0
            self._seconds = seconds or self._seconds
            asked = self._asked.get(answer)
            self._asked = {number: when for number, when in self._asked.items() if number > answer}
            if self._lapsed and asked is not None:
                self._lapsed = False
                self._extend(asked)
                if self._beaten < self._until:
                    self._extend(self._beaten)
            elif first:
                self._extend(self._began)

    def _extend(self, since: float) -> None:
        self._until = max(self._until, since + self._seconds * _SHARE)
        self._extend_driver(self._until)
