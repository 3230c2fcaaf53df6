"""Waiting for work: heard of within this process, or found in the ledger, where other processes put it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from moorage.db.database import Database
from moorage.db.era import KnownEra
from moorage.ledger import leasing

_LOOK_EVERY = 0.1
_LONGEST = 1.0
"""Then a thread tries to lease in any case."""


class WorkSignal:
    """One thread at a time watches and the others wait for their turn: what is new wakes one, not all."""

    def __init__(self, database: Database, kinds: Sequence[str], era: KnownEra | None = None) -> None:
        self._due = leasing.DueCheck(database, kinds)
        self._era = era or KnownEra(database)
        self._notified = threading.Event()
        self._turn = threading.Lock()
        self._closed = False

    def notify(self) -> None:
        """There is work."""
        self._notified.set()

    def wait(self) -> None:
        """Until there is work, or a while has passed."""
        with self._turn:
            end = time.monotonic() + _LONGEST
            while not self._closed and not self._notified.wait(_LOOK_EVERY) and time.monotonic() < end:
                if self._due.any(self._era.now().least):
                    break
            self._notified.clear()

    def close(self) -> None:
        """Nobody waits any more."""
        self._closed = True
        self._notified.set()
