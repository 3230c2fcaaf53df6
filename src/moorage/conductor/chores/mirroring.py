"""What a conductor does for aggregates in Placement: after nodes came or went, and now and then for all."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from moorage.compute.aggregates.mirror import FAILURES, PROBLEMS, Mirror
from moorage.compute.aggregates.reconciliation import Reconciliation
from moorage.conductor.chores import chores
from moorage.core.periodic import Periodic
from moorage.db.database import Database
from moorage.placement.client.contract import PlacementClient

LOG = logging.getLogger(__name__)

NODES = "aggregates of nodes"
EVERYTHING = "aggregates of everything"
_LEASE = timedelta(minutes=10)
_TICK = 10.0
"""Seconds between two looks at nodes for which Placement had no provider yet, or did not answer."""


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
        """Nodes came, moved or left."""
        self._ticks.wake()

    def _tick(self) -> None:
        if self._mirror.nodes_wait():
            self._alone(NODES, timedelta(0), self._mirror.follow_nodes)
        if self._interval:
            self._alone(EVERYTHING, timedelta(seconds=self._interval), self._compare)

    def _alone(self, name: str, every: timedelta, work: Callable[[], object]) -> None:
        """Do it unless another conductor is at it, or has just been."""
        if self._database.transact(
            lambda connection: chores.claim(connection, name, every=every, lease=_LEASE)
        ):
            try:
                work()
            finally:
                self._database.transact(lambda connection: chores.finish(connection, name))

    def _compare(self) -> None:
        try:
            found = self._reconciliation.run()
        except PROBLEMS as error:
            FAILURES.labels("sync").inc()
            LOG.warning("the aggregates in Placement could not be compared with ours: %s", error)
            return
        if found.changes:
            LOG.info("aggregates in Placement put right: %d added, %d removed", found.added, found.removed)
