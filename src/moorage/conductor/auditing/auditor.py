"""Makes an audit: looks, looks again after the grace period, and repairs what it may."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter, Gauge
from sqlalchemy.engine import Connection

from moorage.bus.contract import BusError
from moorage.compute.audits import audit as audits
from moorage.compute.audits import findings
from moorage.compute.audits.audit import Audit, Repair, Stage
from moorage.compute.audits.findings import MEND, Drift, Ending, Finding
from moorage.conductor.auditing.contract import AuditCheck, CheckFailedError
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import operations, servers
from moorage.ledger import queue
from moorage.network.contract import NetworkError, NetworkUnavailableError
from moorage.placement.client.contract import PlacementRefusedError, PlacementUnavailableError

LOG = logging.getLogger(__name__)

DIFFERENCES = Gauge(
    "moorage_audit_differences", "Confirmed differences, by check.", ["check"], multiprocess_mode="max"
)
REPAIRS = Counter("moorage_audit_repairs_total", "Repairs by audits.", ["check", "outcome"])
FAILED_CHECKS = Counter("moorage_audit_failed_checks_total", "Checks that could not be made.", ["check"])

PROBLEMS = (
    CheckFailedError,
    PlacementUnavailableError,
    PlacementRefusedError,
    NetworkUnavailableError,
    NetworkError,
    BusError,
    LookupError,
)
"""Why a check or a repair fails without anybody's fault here."""
_PATIENCE = 30.0
"""Seconds that a repair by others is waited for."""


class StoppedError(Exception):
    """The conductor ends, or another one may be at the audit by now: it is made again from the beginning."""


_ENDINGS = (StoppedError, sa.exc.OperationalError)
"""After which all of it is made again. What else goes wrong with a check must not cost the others: an audit
that ends with every mistake would be made again and again, and never tell anything."""


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, PROBLEMS) else f"{type(error).__name__}: {error}"


def _warn(error: Exception, sentence: str, *told: object) -> None:
    """With where it came from, if nobody expected it."""
    LOG.warning(sentence, *told, exc_info=None if isinstance(error, PROBLEMS) else error)


class Auditor:
    def __init__(
        self,
        database: Database,
        checks: Mapping[str, AuditCheck],
        grace: timedelta,
        wake: Callable[[], None],
        still_ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """`still_ours` is asked between any two parts of the work; `wake` tells of new operations."""
        self._database = database
        self._checks = checks
        self._grace = grace
        self._wake = wake
        self._still_ours = still_ours
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()

    def make(self, audit: Audit) -> None:
        names = [name for name in self._checks if not audit.checks or name in audit.checks]
        failures: dict[str, str] = {}
        for name in names:
            self._look(audit, self._checks[name], failures)
        made = [name for name in names if name not in failures]
        self._confirm(audit, made)
        if audit.repair is not Repair.NOTHING:
            self._repair_all(audit, made)
        self._database.transact(lambda connection: audits.finish(connection, audit.uuid))
        self.measure()

    def measure(self) -> None:
        with self._database.read() as connection:
            counts = findings.count(connection)
        for name in self._checks:
            DIFFERENCES.labels(name).set(counts.get(name, 0))

    # ------------------------------------------------------------ looking

    def _look(self, audit: Audit, check: AuditCheck, failures: dict[str, str]) -> None:
        began = utcnow()
        try:
            for portion in check.look():
                self._tell(audit, Stage.LOOKING, check.name, portion.done, portion.total)
                for suspect in portion.suspects:
                    found = check.judge(suspect)
                    if found is not None:
                        self._see(check.name, found)
        except _ENDINGS:
            raise
        except Exception as error:
            FAILED_CHECKS.labels(check.name).inc()
            said = _said(error)
            _warn(error, "check %s of audit %s can't be made: %s", check.name, audit.uuid, said)
            failures[check.name] = said
            self._database.transact(lambda connection: audits.fail(connection, audit.uuid, failures))
            return
        self._database.transact(lambda connection: findings.end_unseen(connection, check.name, began))

    def _see(self, check: str, found: Drift) -> None:
        self._database.transact(lambda connection: findings.see(connection, check, found, self._grace))

    def _confirm(self, audit: Audit, names: Sequence[str]) -> None:
        """What was seen before the grace period, and is the same after it, is no work under way."""
        new = self._open(names, confirmed=False)
        if not new:
            return
        ready = max(finding.first_seen_at for finding in new) + self._grace
        self._tell(audit, Stage.CONFIRMING, "", 0, len(new))
        while (pause := (ready - utcnow()).total_seconds()) > 0:
            self._stopping.wait(min(pause, 5.0))
            self._tell(audit, Stage.CONFIRMING, "", 0, len(new))
        for done, finding in enumerate(new, 1):
            self._tell(audit, Stage.CONFIRMING, finding.check_name, done, len(new))
            self._look_again(finding)

    def _look_again(self, finding: Finding) -> Drift | None:
        check = self._checks[finding.check_name]
        try:
            found = check.judge(finding.suspect)
        except _ENDINGS:
            raise
        except Exception as error:
            _warn(error, "%s could not be looked at again: %s", finding.subject, _said(error))
            return None
        if found is None:
            self._database.transact(lambda connection: findings.end(connection, finding.id, Ending.GONE))
        else:
            self._see(check.name, found)
        return found

    def _open(self, names: Sequence[str], *, confirmed: bool) -> list[Finding]:
        with self._database.read() as connection:
            return findings.open_ones(connection, names, confirmed=confirmed)

    def _tell(self, audit: Audit, stage: Stage, check: str, done: int, total: int) -> None:
        if self._stopping.is_set() or not self._still_ours():
            raise StoppedError
        self._database.transact(
            lambda connection: audits.tell(connection, audit.uuid, stage, check, done, total)
        )

    # ------------------------------------------------------------ repairing

    def _repair_all(self, audit: Audit, names: Sequence[str]) -> None:
        wanted = [
            finding
            for finding in self._open(names, confirmed=True)
            if finding.remedy and (finding.safe or audit.repair is Repair.ALL)
        ]
        for done, finding in enumerate(wanted, 1):
            self._tell(audit, Stage.REPAIRING, finding.check_name, done, len(wanted))
            self._repair(finding)

    def _repair(self, finding: Finding) -> None:
        """Judged once more right before; it counts as repaired once nothing differs any more."""
        check = self._checks[finding.check_name]
        found = self._look_again(finding)
        if found is None or found.fingerprint != finding.fingerprint:
            return
        try:
            error = self._act(check, found)
            if error is None and not self._is_mended(check, found):
                error = f"still so after {_PATIENCE:g} s"
        except _ENDINGS:
            raise
        except Exception as problem:
            error = _said(problem)
            if not isinstance(problem, PROBLEMS):
                LOG.exception("a repair of %s failed", check.name)
        REPAIRS.labels(check.name, "repaired" if error is None else "failed").inc()
        if error is not None:
            LOG.warning("audit: %s; the repair failed: %s", found.sentence, error)
            said = error
            self._database.transact(lambda connection: findings.fail(connection, finding.id, said))
            return
        LOG.warning("audit: %s; repaired: %s", found.sentence, found.remedy)
        self._database.transact(lambda connection: findings.end(connection, finding.id, Ending.REPAIRED))

    def _act(self, check: AuditCheck, found: Drift) -> str | None:
        """Why it did not work."""
        if not found.operation:
            check.repair(found)
            return None
        operation = self._database.transact(lambda connection: _enqueue(connection, check.name, found))
        self._wake()
        return self._outcome(operation)

    def _outcome(self, operation: int) -> str | None:
        query = sa.select(operations.c.outcome, operations.c.error).where(operations.c.id == operation)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            with self._database.read() as connection:
                row = connection.execute(query).one()
            if row.outcome is not None:
                return None if row.outcome == "done" else row.error or str(row.outcome)
            self._pause()
        return f"operation {operation} is not at its end after {_PATIENCE:g} s"

    def _is_mended(self, check: AuditCheck, found: Drift) -> bool:
        deadline = time.monotonic() + _PATIENCE
        while check.judge(found.suspect) is not None:
            if time.monotonic() > deadline:
                return False
            self._pause()
        return True

    def _pause(self) -> None:
        if self._stopping.wait(0.2) or not self._still_ours():
            raise StoppedError


def _enqueue(connection: Connection, check: str, found: Drift) -> int:
    """One at a time for a server: under its lock, as by users' requests."""
    query = sa.select(servers.c.id).where(servers.c.uuid == found.server_uuid).with_for_update(key_share=True)
    server_id = connection.execute(query).scalar_one()
    data = {"check": check, "suspect": msgspec.to_builtins(found.suspect)} if found.operation == MEND else {}
    return queue.enqueue(connection, server_id, found.operation, data)
