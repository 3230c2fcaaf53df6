"""Transactions: one way to read, one way to write, and a bounded retry where the database asks for one."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import sqlalchemy as sa
from prometheus_client import Counter
from sqlalchemy.engine import Connection, Engine

from moorage.db.engine import IMMEDIATE, LONGEST_WAIT_SECONDS

LOG = logging.getLogger(__name__)
T = TypeVar("T")

RETRIES = Counter("moorage_db_retries_total", "Transactions run again because the database asked for it.")
_RETRYABLE_SQLSTATES = {"40001", "40P01", "23505", "23503"}
"""Serialisation failure, deadlock; a unique or foreign key that another transaction took or dropped since we
looked: the next attempt sees it, and can say what is wrong."""
_ATTEMPTS = 6


class Database:
    """An engine and the transactions that the rest of Moorage may run on it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.is_postgresql = engine.dialect.name == "postgresql"
        self._autocommit = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshot = (
            engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            if self.is_postgresql
            else engine
        )
        self._writing = engine.execution_options(**{IMMEDIATE: True})
        self._turns = None if self.is_postgresql else threading.Lock()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One statement, or several that need no common snapshot: costs no BEGIN and no COMMIT."""
        with self._autocommit.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Several statements that see one and the same state."""
        with self._snapshot.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with self._turn(), self._writing.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """SQLite has one writer at a time, and lets the others look again after ever longer naps; threads
        of one process can do better, and wake the next one at once."""
        if self._turns is None:
            yield
            return
        if not self._turns.acquire(timeout=LONGEST_WAIT_SECONDS):
            late = TimeoutError(f"another thread has been writing for {LONGEST_WAIT_SECONDS} s")
            raise sa.exc.OperationalError("BEGIN IMMEDIATE", None, late)
        try:
            yield
        finally:
            self._turns.release()

    def transact(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in a write transaction, again (a few times) if the database rolled it back.

        A connection that is lost on the way rolls back too; one that is lost at the commit may not have.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            committing = False
            try:
                with self.write() as connection:
                    result = work(connection)
                    committing = True
                return result
            except (sa.exc.OperationalError, sa.exc.IntegrityError) as error:
                lost = error.connection_invalidated and not committing
                if attempt == _ATTEMPTS or not (lost or _retryable(error)):
                    raise
                RETRIES.inc()
                LOG.info("transaction rolled back by the database, attempt %d of %d", attempt, _ATTEMPTS)
                time.sleep(random.uniform(0, 0.01 * 2**attempt))
        raise AssertionError("unreachable")


def _retryable(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) in _RETRYABLE_SQLSTATES
