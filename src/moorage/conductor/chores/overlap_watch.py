"""Tells operators, in the log and as a metric, of hosts whose partitions overlap."""

from __future__ import annotations

import logging
from datetime import timedelta

from prometheus_client import Gauge

from moorage.conductor.ownership import overlaps
from moorage.core.periodic import Periodic
from moorage.db.database import Database

LOG = logging.getLogger(__name__)
OVERLAPS = Gauge(
    "moorage_conductor_overlapping_partitions",
    "Pairs of partitions that share nodes, though their hosts don't share them out among each other.",
)

INTERVAL = 60.0


class OverlapWatch:
    """Every conductor looks: it is one short question, and each has a log and metrics of its own."""

    def __init__(self, database: Database, down_time: int) -> None:
        self._database = database
        self._down_after = timedelta(seconds=down_time)
        self._told: set[str] = set()
        self._looks = Periodic("overlaps of partitions", INTERVAL, self.look)

    def start(self) -> None:
        self._looks.start()

    def stop(self) -> None:
        self._looks.stop()

    def look(self) -> None:
        with self._database.read() as connection:
            found = {str(overlap) for overlap in overlaps.find(connection, self._down_after)}
        OVERLAPS.set(len(found))
        for overlap in sorted(found - self._told):
            LOG.warning("hosts serve some of the same nodes, and don't share them out: %s", overlap)
        if self._told and not found:
            LOG.info("no partitions overlap any more")
        self._told = found
