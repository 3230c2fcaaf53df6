"""What a conductor does about the backlog of Placement: tries, with growing pauses, until it is done."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection

from moorage.bus.contract import SAY_AGAIN, BusError, Task
from moorage.compute.hosts import backlog
from moorage.compute.hosts.backlog import BacklogEntry, BacklogKind
from moorage.compute.hosts.status_mirror import LOOK_AGAIN, PROBLEMS, StatusMirror
from moorage.conductor.chores import chores
from moorage.core.periodic import Periodic
from moorage.db.database import Database
from moorage.db.tables.compute import nodes
from moorage.placement.client.contract import PlacementClient, PlacementUnavailableError

LOG = logging.getLogger(__name__)
OUTCOMES = Counter(
    "moorage_placement_backlog_total", "Tries to tell Placement what it had to be told.", ["kind", "outcome"]
)

CHORE = "backlog of Placement"
_LEASE = timedelta(minutes=10)
_TICK = 5.0
_PORTION = 100


class BacklogWorker:
    def __init__(
        self, database: Database, placement: PlacementClient, cast: Callable[[str, list[Task]], None]
    ) -> None:
        self._database = database
        self._placement = placement
        self._statuses = StatusMirror(database, placement)
        self._cast = cast
        self._ticks = Periodic(CHORE, _TICK, self.look)

    def start(self) -> None:
        self._ticks.start()

    def stop(self) -> None:
        self._ticks.stop()

    def look(self) -> None:
        """Try what is due, unless another conductor is at it."""
        if not self._due(1):
            return
        if self._database.transact(
            lambda connection: chores.claim(connection, CHORE, every=timedelta(0), lease=_LEASE)
        ):
            try:
                for entry in self._due(_PORTION):
                    if not self._try(entry):
                        break  # the others are due as before, and it is not asked for each of them in vain
            finally:
                self._database.transact(lambda connection: chores.finish(connection, CHORE))

    def _due(self, most: int) -> list[BacklogEntry]:
        with self._database.read() as connection:
            return backlog.due(connection, most)

    def _try(self, entry: BacklogEntry) -> bool:
        """False if Placement does not answer."""
        try:
            if entry.kind is BacklogKind.STATUS:
                self._statuses.settle(entry.subject)
            else:
                self._remove(entry.subject)
        except PROBLEMS as error:
            OUTCOMES.labels(entry.kind.value, "failed").inc()
            said = str(error)
            pause = self._database.transact(lambda connection: backlog.postpone(connection, entry, said))
            what = "the status of host" if entry.kind is BacklogKind.STATUS else "the removal of provider"
            LOG.warning(
                "Placement still does not know of %s %s, next try in %d s: %s",
                what,
                entry.subject,
                pause.total_seconds(),
                said,
            )
            return not isinstance(error, PlacementUnavailableError)
        OUTCOMES.labels(entry.kind.value, "done").inc()
        self._database.transact(lambda connection: _end(connection, entry))
        return True

    def _remove(self, uuid: str) -> None:
        """Unless some host has the node again: then the provider is that host's.

        If one comes for it while we are at it, it is asked to say everything again.
        """
        if self._owner(uuid) is not None:
            return
        self._placement.delete_provider(uuid)
        LOG.info("provider %s, whose node or host is gone, is gone, too", uuid)
        owner = self._owner(uuid)
        if owner is not None:
            try:
                self._cast(owner, [Task(0, "", SAY_AGAIN, 0, "")])
            except BusError as error:  # it says everything again by itself, later
                LOG.warning("host %s could not be asked to report provider %s anew: %s", owner, uuid, error)

    def _owner(self, uuid: str) -> str | None:
        with self._database.read() as connection:
            query = sa.select(nodes.c.host).where(nodes.c.uuid == uuid)
            return connection.execute(query).scalar_one_or_none()


def _end(connection: Connection, entry: BacklogEntry) -> None:
    if entry.error:
        backlog.look_again(connection, entry, LOOK_AGAIN)
    else:
        backlog.settle(connection, entry)
