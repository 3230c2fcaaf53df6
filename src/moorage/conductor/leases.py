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

import sqlalchemy as sa

from moorage.conductor import ledger
from moorage.db.database import Database

LOG = logging.getLogger(__name__)
_MOST_RENEWALS = 60
"""Ten minutes, with leases of half a minute: who is at a batch for longer hangs."""


@dataclass(slots=True)
class _Held:
    ids: Sequence[int]
    renewals: int = 0


class Leases:
    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leases", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    @contextmanager
    def holding(self, owner: str, ids: Sequence[int]) -> Iterator[None]:
        """The leases of these are renewed meanwhile; one that was given back or lost stays so."""
        with self._lock:
            self._held[owner] = _Held(ids)
        try:
            yield
        finally:
            with self._lock:
                del self._held[owner]

    def renew(self) -> None:
        with self._lock:
            held = {owner: one for owner, one in self._held.items() if one.renewals < _MOST_RENEWALS}
        for owner, one in held.items():
            one.renewals += 1
            self._renew(owner, one.ids)

    def _renew(self, owner: str, ids: Sequence[int]) -> None:
        self._database.transact(lambda connection: ledger.renew(connection, owner, ids, self._seconds))

    def _run(self) -> None:
        while not self._stopping.wait(self._seconds / 3):
            try:
                self.renew()
            except sa.exc.OperationalError as error:
                LOG.warning("leases can't be renewed, the database does not answer: %s", error.orig)
            except Exception:
                LOG.exception("leases can't be renewed")
