"""Takes drains and rebalances on: any conductor may, one at a time, since whoever is at one holds its row."""

from __future__ import annotations

import logging
from collections.abc import Callable

from prometheus_client import Gauge

from moorage.compute.drains import advancing, drains
from moorage.compute.drains.drain import Drain
from moorage.core.periodic import Periodic
from moorage.db.database import Database
from moorage.db.era import KnownEra

LOG = logging.getLogger(__name__)
UNFINISHED = Gauge("moorage_conductor_drains", "Hosts that are being drained, and rebalances under way.")

INTERVAL = 1.0


class Draining:
    def __init__(
        self, database: Database, down_time: int, wake: Callable[[], None], era: KnownEra | None = None
    ) -> None:
        """`wake` has the moves begun that a drain has written down."""
        self._database = database
        self._era = era or KnownEra(database)
        self._down_time = down_time
        self._wake = wake
        self._looks = Periodic("draining of hosts", INTERVAL, self.look)

    def start(self) -> None:
        self._looks.start()

    def stop(self) -> None:
        self._looks.stop()

    def look(self) -> None:
        with self._database.read() as connection:
            unfinished = drains.all_unfinished(connection)
        UNFINISHED.set(len(unfinished))
        if unfinished and self._era.now().is_held:
            return  # what it is to move may be elsewhere by now
        for drain_id in unfinished:
            self._advance(drain_id)

    def _advance(self, drain_id: int) -> None:
        """What is wrong with one drain keeps no other from going on."""
        try:
            drain = self._database.transact(
                lambda connection: advancing.advance(connection, drain_id, down_time=self._down_time)
            )
        except Exception:
            LOG.exception("drain %d could not be taken on, will be tried again", drain_id)
            return
        self._wake()
        if drain is not None and drain.finished_at is not None:
            self._tell_end(drain)

    def _tell_end(self, drain: Drain) -> None:
        with self._database.read() as connection:
            tally = drains.counts(connection, [drain.id])[drain.id]
        said = ", ".join(f"{count} {state}" for state, count in tally.items() if count) or "it had no servers"
        of_host = "" if drain.host is None else f" of host {drain.host}"
        LOG.info("%s %s%s is %s: %s", drain.noun, drain.uuid, of_host, drain.state, said)
