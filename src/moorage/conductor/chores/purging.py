"""One conductor purges what is over for longer than it is to be kept."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta

from prometheus_client import Counter

from moorage.compute.growth import purging
from moorage.conductor.chores import chores
from moorage.core.clock import utcnow
from moorage.core.periodic import Periodic
from moorage.db.database import Database

LOG = logging.getLogger(__name__)

PURGED = Counter("moorage_purged_rows_total", "Rows that were kept long enough, by table.", ["table"])
CHORE = "purging"
_TICK = 60.0
_EVERY = timedelta(minutes=10)
_LEASE = timedelta(minutes=10)
_PAUSE = 0.05
"""Seconds between two batches, so that users' requests come in between."""


class Purging:
    def __init__(self, database: Database, keep: int) -> None:
        """`keep` is for how many seconds what is over is kept; 0 for ever."""
        self._database = database
        self._keep = timedelta(seconds=keep)
        self._stopping = threading.Event()
        self._ticks = Periodic(CHORE, _TICK, self._tick)

    def start(self) -> None:
        if self._keep:
            self._ticks.start()

    def stop(self) -> None:
        self._stopping.set()
        self._ticks.stop()

    def _tick(self) -> None:
        if self._database.transact(
            lambda connection: chores.claim(connection, CHORE, every=_EVERY, lease=_LEASE)
        ):
            try:
                self.purge()
            finally:
                self._database.transact(lambda connection: chores.finish(connection, CHORE))

    def purge(self) -> None:
        """Two that do it at once delete the same rows, which does no harm."""
        total = 0
        for what, gone in purging.batches(self._database.transact, utcnow() - self._keep):
            PURGED.labels(what).inc(gone)
            total += gone
            if self._stopping.wait(_PAUSE):
                break
        if total:
            LOG.info("%d rows of what has been over for long enough were purged", total)
