"""A conductor's own heartbeats, by which operators see that it is there."""

from __future__ import annotations

from typing import Any

from moorage.compute.hosts import registry
from moorage.core.clock import utcnow
from moorage.core.health import Pulse
from moorage.core.periodic import Periodic
from moorage.db.database import Database

VERSION = 1
"""Grows when conductors learn something that others have to know about."""


class Presence:
    """Conductors of one host share an entry: it is up as long as one of them lives."""

    def __init__(self, database: Database, host: str, interval: float) -> None:
        self._database = database
        self._host = host
        self._facts: dict[str, Any] = {"started_at": utcnow().isoformat()}
        self.pulse = Pulse("no heartbeat was written", longest=3 * interval)
        self._beats = Periodic("presence", interval, self._beat)

    def start(self) -> None:
        self._beats.start()

    def stop(self) -> None:
        self._beats.stop()

    def _beat(self) -> None:
        self._database.transact(
            lambda connection: registry.heartbeat(
                connection, self._host, registry.CONDUCTOR_BINARY, version=VERSION, facts=self._facts
            )
        )
        self.pulse.beat()
