"""Tells operators, in the log and as metrics, of a database that went back, and of one not released yet."""

from __future__ import annotations

import logging

from prometheus_client import Gauge

from moorage.compute.hosts import ahead
from moorage.core.periodic import Periodic
from moorage.db import era
from moorage.db.database import Database

LOG = logging.getLogger(__name__)
AHEAD = Gauge(
    "moorage_conductor_hosts_ahead",
    "Hosts that know of more than the database: it was restored, and nobody has said so.",
)
HELD = Gauge(
    "moorage_conductor_restore_held", "1 as long as a restored database is not released, and work waits."
)

INTERVAL = 30.0


class EraWatch:
    """Every conductor looks, also right after its start: it is one short question."""

    def __init__(self, database: Database, interval: float = INTERVAL) -> None:
        self._database = database
        self._told: set[str] = set()
        self._looks = Periodic("the era of the database", interval, self.look)

    def start(self) -> None:
        self._looks.start()

    def stop(self) -> None:
        self._looks.stop()

    def look(self) -> None:
        with self._database.read() as connection:
            found, held = ahead.find(connection), era.current(connection).is_held
        AHEAD.set(len(found))
        HELD.set(held)
        for host in found:
            if host.host not in self._told:
                LOG.error("%s", host)
        self._told = {host.host for host in found}
