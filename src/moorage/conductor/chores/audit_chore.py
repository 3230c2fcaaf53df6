"""One conductor makes the audits that were asked for, and some that nobody asks for, now and then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

from sqlalchemy.engine import Connection

from moorage.compute.audits import audit as audits
from moorage.compute.audits.audit import Audit, Repair
from moorage.conductor.auditing.auditor import Auditor, StoppedError
from moorage.conductor.auditing.contract import AuditCheck
from moorage.conductor.chores import chores
from moorage.core.periodic import Periodic
from moorage.db import era
from moorage.db.database import Database

LOG = logging.getLogger(__name__)

CHORE = "audit"
BY_ITSELF = "audit by itself"
_TICK = 1.0
_THOUGHT = 30.0
"""Seconds between two thoughts of whether it is time for one that nobody asks for."""
_COUNT = 15.0
"""Seconds between two looks at how many differences there are, whoever found or mended them. Who made an
audit would else tell for ever what it found then."""
_LEASE = timedelta(minutes=2)
_RENEWAL = 20.0
"""Seconds between two renewals of the lease."""


class AuditChore:
    def __init__(
        self,
        database: Database,
        checks: Mapping[str, AuditCheck],
        wake: Callable[[], None],
        *,
        interval: int,
        grace: int,
        repair: Repair,
    ) -> None:
        """`interval` is the number of seconds between two audits that nobody asked for; 0 for none."""
        self._database = database
        self._interval = timedelta(seconds=interval)
        self._repair = repair
        self._renewed = 0.0
        self._next_thought = 0.0
        self._next_count = 0.0
        self._auditor = Auditor(database, checks, timedelta(seconds=grace), wake, self._renew)
        self._ticks = Periodic("audits", _TICK, self.tick)

    def start(self) -> None:
        self._ticks.start()

    def stop(self) -> None:
        self._auditor.stop()
        self._ticks.stop()

    def tick(self) -> None:
        if time.monotonic() >= self._next_count:
            self._next_count = time.monotonic() + _COUNT
            self._auditor.measure()
        if self._interval and time.monotonic() >= self._next_thought:
            self._next_thought = time.monotonic() + min(_THOUGHT, self._interval.total_seconds())
            self._database.transact(self._ask_by_itself)
        audit = self._next()
        if audit is None or not self._database.transact(
            lambda connection: chores.claim(connection, CHORE, every=timedelta(0), lease=_LEASE)
        ):
            return
        self._renewed = time.monotonic()
        try:
            while audit is not None:
                self._auditor.make(audit)
                audit = self._next()
        except StoppedError:
            LOG.info("an audit is left to another conductor, or to a later time")
            return
        finally:
            self._database.transact(lambda connection: chores.finish(connection, CHORE))

    def _next(self) -> Audit | None:
        with self._database.read() as connection:
            return audits.next_one(connection)

    def _ask_by_itself(self, connection: Connection) -> None:
        """For the first time after an interval: a new cloud has nothing to compare."""
        chores.count_from_now(connection, BY_ITSELF)
        if audits.is_one_due(connection):
            return
        if chores.claim(connection, BY_ITSELF, every=self._interval, lease=timedelta(0)):
            held = era.current(connection).is_held
            audits.ask(connection, [], Repair.NOTHING if held else self._repair)
            chores.finish(connection, BY_ITSELF)

    def _renew(self) -> bool:
        """Whether the audit is still ours; two that make it at once find and repair the same."""
        now = time.monotonic()
        if now - self._renewed > _LEASE.total_seconds():
            return False
        if now - self._renewed > _RENEWAL:
            self._database.transact(lambda connection: chores.renew(connection, CHORE, _LEASE))
            self._renewed = now
        return True
