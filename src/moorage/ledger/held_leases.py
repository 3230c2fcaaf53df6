"""The leases of what a conductor is at, renewed for as long as it is: a lease ends when its holder does.

A step may take long: a batch is large, Placement is slow, the machine is busy. Without this, another
conductor would begin with the same work meanwhile, and both would claim for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.core.health import Pulse
from moorage.db.database import Database
from moorage.ledger import leasing

LOG = logging.getLogger(__name__)
_MOST_RENEWALS = 60
"""Ten minutes, with leases of half a minute: who is at a batch for longer hangs."""


@dataclass(slots=True)
class Lease:
    """What one thread of a conductor holds, and until when as far as it knows."""

    owner: str
    ids: Sequence[int]
    until: datetime
    renewals: int = 0

    def holds(self) -> bool:
        """False after a stall: another conductor may hold the lease by now."""
        return utcnow() < self.until


class Leases:
    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: dict[str, Lease] = {}
        self._stopping = threading.Event()
        self.pulse = Pulse("leases were not renewed", longest=seconds)
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    @contextmanager
    def holding(self, lease: Lease) -> Iterator[None]:
        """It is renewed meanwhile; what of it was given back or lost stays so."""
        with self._lock:
            self._held[lease.owner] = lease
        try:
            yield
        finally:
            with self._lock:
                del self._held[lease.owner]

    def renew(self) -> None:
        with self._lock:
            held = [lease for lease in self._held.values() if lease.renewals < _MOST_RENEWALS]
        for lease in held:
            lease.renewals += 1
            self._renew(lease)

    def _renew(self, lease: Lease) -> None:
        """A lease that ran out may have another holder: then it is the next checkpoint that tells."""
        until = utcnow() + timedelta(seconds=self._seconds)
        still = lease.holds()
        self._database.transact(lambda connection: leasing.renew(connection, lease.owner, lease.ids, until))
        if still:
            lease.until = until

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds / 3):
            try:
                self.renew()
                self.pulse.beat()
            except sa.exc.OperationalError as error:
                LOG.warning("leases can't be renewed, the database does not answer: %s", error.orig)
            except Exception:
                LOG.exception("leases can't be renewed")
