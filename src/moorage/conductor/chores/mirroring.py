"""What a conductor does for aggregates in Placement: drains their outbox, and compares all now and then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from prometheus_client import Gauge

from moorage.compute.aggregates import outbox
from moorage.compute.aggregates.mirror import FAILURES, PROBLEMS, Mirror
from moorage.compute.aggregates.reconciliation import Reconciliation
from moorage.conductor.chores import chores
from moorage.core.clock import utcnow
from moorage.core.periodic import Periodic
from moorage.db.database import Database
from moorage.placement.client.contract import PlacementClient

LOG = logging.getLogger(__name__)

NODES = "aggregates of nodes"
EVERYTHING = "aggregates of everything"
DUE = Gauge(
    "moorage_mirror_due",
    "Nodes and deleted aggregates that Placement has to be told of.",
    multiprocess_mode="max",
)
DUE_SECONDS = Gauge(
    "moorage_mirror_due_seconds", "How long the oldest of them has waited.", multiprocess_mode="max"
)
_LEASE = timedelta(minutes=10)
_DRAINING_LEASE = timedelta(seconds=30)
"""Short, since others heal nothing for so long if a conductor dies in the middle; two at once do no harm."""
_TICK = 10.0
"""Seconds between two looks at the outbox: it keeps nodes that Placement did not have at the last one."""


class Mirroring:
    def __init__(self, database: Database, placement: PlacementClient, interval: int) -> None:
        """`interval` is the number of seconds between two comparisons of everything; 0 for none."""
        self._database = database
        self._mirror = Mirror(database, placement)
        self._reconciliation = Reconciliation(database, placement)
        self._interval = interval
        self._ticks = Periodic("mirroring", min(_TICK, interval or _TICK), self._tick)

    def start(self) -> None:
        self._ticks.start()

    def stop(self) -> None:
        self._ticks.stop()

    def wake(self) -> None:
        """Something is in the outbox."""
        self._ticks.wake()

    def _tick(self) -> bool:
        """False, and so tried again soon, if Placement could not be told."""
        told = True
        if self._measure():
            told = self._alone(NODES, timedelta(0), _DRAINING_LEASE, self._mirror.drain)
            self._measure()
        if self._interval:
            self._alone(EVERYTHING, timedelta(seconds=self._interval), _LEASE, self._compare)
        return told

    def _measure(self) -> bool:
        """Whether there is anything to tell."""
        with self._database.read() as connection:
            depth = outbox.depth(connection)
        DUE.set(depth.entries)
        DUE_SECONDS.set((utcnow() - depth.oldest).total_seconds() if depth.oldest is not None else 0)
        return depth.entries > 0

    def _alone(self, name: str, every: timedelta, lease: timedelta, work: Callable[[], bool]) -> bool:
        """Do it unless another conductor is at it, or has just been."""
        if not self._database.transact(
            lambda connection: chores.claim(connection, name, every=every, lease=lease)
        ):
            return True
        try:
            return work()
        finally:
            self._database.transact(lambda connection: chores.finish(connection, name))

    def _compare(self) -> bool:
        try:
            found = self._reconciliation.run()
        except PROBLEMS as error:
            FAILURES.labels("sync").inc()
            LOG.warning("the aggregates in Placement could not be compared with ours: %s", error)
            return False
        if found.changes:
            LOG.info("aggregates in Placement put right: %d added, %d removed", found.added, found.removed)
        return True
