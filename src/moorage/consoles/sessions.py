"""The consoles that are open in this process, and the end of those that may be seen no longer."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import sqlalchemy as sa
from prometheus_client import Counter, Gauge

from moorage.compute.consoles import tokens
from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.core.periodic import Periodic
from moorage.db.database import Database

LOG = logging.getLogger(__name__)
OPEN = Gauge("moorage_consoles_open", "Consoles that are open.")
CUT = Counter("moorage_consoles_cut_total", "Consoles closed because they may be seen no longer.")

_LONGEST_OUTAGE = 60.0
"""Seconds without a database after which all consoles are closed: nobody knows any more who may see them."""
_KEEP_SECONDS = 60.0


class ConsoleSession:
    def __init__(self, grant: ConsoleGrant, client: socket.socket, console: socket.socket) -> None:
        self.grant = grant
        self._sockets = (client, console)

    def cut(self) -> None:
        """Whoever waits for one of its sockets notices.

        It is the connection that is shut down, below TLS: a socket whose TLS another thread ends would send
        its next words in the clear.
        """
        for each in self._sockets:
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)


class Sessions:
    def __init__(self, database: Database, interval: float) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._open: set[ConsoleSession] = set()
        self._looked_at = time.monotonic()
        self._kept_at = 0.0
        self._looks = Periodic("consoles", interval, self.look, longest_retry=interval)

    def start(self) -> None:
        self._looks.start()

    def stop(self) -> None:
        self._looks.stop()
        for session in self._all():
            session.cut()

    @contextmanager
    def holding(self, session: ConsoleSession) -> Iterator[None]:
        """While it is open, it is looked after."""
        with self._lock:
            self._open.add(session)
            OPEN.inc()
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(session)
                OPEN.dec()

    def look(self) -> None:
        """Close those whose server is gone or elsewhere, or whose token was taken back."""
        sessions = self._all()
        if not sessions:
            self._looked_at = time.monotonic()
            return
        try:
            good = self._ask({session.grant.id for session in sessions})
        except sa.exc.SQLAlchemyError as error:
            LOG.warning("the database can't be asked who may see consoles: %s", error)
            good = set() if time.monotonic() - self._looked_at > _LONGEST_OUTAGE else None
        else:
            self._looked_at = time.monotonic()
        for session in sessions:
            if good is not None and session.grant.id not in good:
                LOG.info("a console of server %s is closed", session.grant.server_uuid)
                CUT.inc()
                session.cut()

    def _ask(self, ids: set[int]) -> set[int] | None:
        with self._database.read() as connection:
            good = tokens.still_good(connection, ids)
        if time.monotonic() - self._kept_at > _KEEP_SECONDS:
            self._database.transact(lambda connection: tokens.keep(connection, good))
            self._kept_at = time.monotonic()
        return good

    def _all(self) -> list[ConsoleSession]:
        with self._lock:
            return list(self._open)
