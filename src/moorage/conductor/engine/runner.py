"""The conductor: leases operations in batches, runs the step each is at, and keeps what was reached.

Operations of one kind at one step are worked on together, so that a hundred builds cost one question to
Placement and one commit, not a hundred.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter, Histogram

from moorage.compute.servers import actions, servers
from moorage.conductor.engine.kind import Kind
from moorage.conductor.engine.operation_notifications import OperationNotifications
from moorage.conductor.engine.step_log import StepLog
from moorage.conductor.engine.work import Work, WriteTogether
from moorage.conductor.engine.work_signal import WorkSignal
from moorage.core import context
from moorage.core.clock import utcnow
from moorage.core.health import HealthCheck
from moorage.db.database import Database
from moorage.db.era import KnownEra
from moorage.db.tables.compute import servers as server_table
from moorage.images.contract import ImagesUnavailableError
from moorage.ledger import checkpoints, leasing
from moorage.ledger.checkpoints import Checkpoint, Completion
from moorage.ledger.declared import Step
from moorage.ledger.held_leases import Lease, Leases
from moorage.ledger.operation import Operation
from moorage.network.contract import NetworkUnavailableError
from moorage.placement.client.contract import PlacementUnavailableError

LOG = logging.getLogger(__name__)

STEPS = Counter("moorage_conductor_steps_total", "Steps run.", ["kind", "step"])
FENCED = Counter(
    "moorage_conductor_fenced_total",
    "Operations whose lease ended, or that were cancelled, while a conductor was at them.",
)
UNREADABLE = Counter(
    "moorage_conductor_unreadable_total", "Operations whose state this release can't read.", ["kind"]
)
UNDECLARED = Counter(
    "moorage_conductor_undeclared_steps_total",
    "Steps that followed another one though their kind of operation does not say so.",
    ["kind", "step", "then"],
)
OUTAGES = Counter("moorage_conductor_outages_total", "Batches lost because the ledger could not be reached.")
BATCH = Histogram(
    "moorage_conductor_batch", "Operations leased at once.", buckets=(1, 2, 4, 8, 16, 32, 64, 128)
)

_PAUSE_SECONDS = 1.0
_MOST_STEPS = 20
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 0.5, 60.0
_MOST_TRIES = 12
"""Some five minutes, with the pauses in between."""
_OUTAGES = (
    sa.exc.OperationalError,
    PlacementUnavailableError,
    NetworkUnavailableError,
    ImagesUnavailableError,
)
"""Not the fault of any server in a batch: to take each of them alone would find the same again."""


def _tell(kind: str, step: str, group: Sequence[Work[Any]], error: Exception) -> None:
    """A reason is told once, however often the step is tried again: `moorage ops` has it meanwhile."""
    is_outage = isinstance(error, _OUTAGES)
    if len(group) > 1 and not is_outage:
        LOG.info(
            "step %s of %s failed for %d operations together: each is tried alone", step, kind, len(group)
        )
        return
    is_news = any(not work.operation.tries for work in group)
    about = {"work": group[0].context} if len(group) == 1 else None
    if is_outage:
        line, level = "step %s of %s has to wait, for %d operations: %s", logging.WARNING
        LOG.log(level if is_news else logging.DEBUG, line, step, kind, len(group), error, extra=about)
    else:
        line, level = "step %s of %s failed, and is tried again", logging.ERROR
        LOG.log(level if is_news else logging.DEBUG, line, step, kind, exc_info=error, extra=about)


class _Breakdown(NamedTuple):
    """A step that raised, and those that it was to be done for."""

    works: Sequence[Work[Any]]
    error: Exception


class Runner:
    def __init__(
        self,
        database: Database,
        kinds: Mapping[str, Kind],
        notices: OperationNotifications,
        *,
        threads: int = 2,
        batch: int = 64,
        lease_seconds: float = 30.0,
        era: KnownEra | None = None,
    ) -> None:
        self._database = database
        self._era = era or KnownEra(database)
        self._notices = notices
        self._step_log = StepLog()
        self._kinds = kinds
        self._steps = {(kind.name, step.name): step for kind in kinds.values() for step in kind.steps}
        self._batch = batch
        self._lease_seconds = lease_seconds
        self._leases = Leases(database, lease_seconds)
        self._name = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"
        self._work_signal = WorkSignal(database, list(kinds), self._era)
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name=f"conductor-{number}", daemon=True)
            for number in range(threads)
        ]

    def start(self) -> None:
        self._leases.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish the steps under way and take no more; what could go on at once is handed over."""
        self._stopping.set()
        self._work_signal.close()
        for thread in self._threads:
            thread.join(timeout=self._lease_seconds)
        self._leases.stop()

    def checks(self) -> list[HealthCheck]:
        return [HealthCheck("leases", self._leases.pulse.trouble), HealthCheck("threads", self._missing)]

    def _missing(self) -> str | None:
        """Each survives whatever its work raises: one that is gone was ended by something worse."""
        if any(thread.ident is None for thread in self._threads):
            return "not started yet"
        gone = [thread.name for thread in self._threads if not thread.is_alive()]
        return f"gone: {', '.join(gone)}" if gone else None

    def wake(self) -> None:
        """There is work; without this it is found at the next look."""
        self._work_signal.notify()

    def _run(self, number: int) -> None:
        owner = f"{self._name}:{number}"
        while not self._stopping.is_set():
            try:
                if not self.run_once(owner):
                    self._work_signal.wait()
            except sa.exc.OperationalError as error:
                self._pause(f"its ledger can't be reached: {error.orig}")
            except Exception:
                LOG.exception("a batch of operations was not kept")
                self._pause("an unexpected error")

    def _pause(self, why: str) -> None:
        """What was leased is found again when its lease is over."""
        OUTAGES.inc()
        LOG.warning("the conductor pauses for %.0f s: %s", _PAUSE_SECONDS, why)
        self._stopping.wait(_PAUSE_SECONDS)

    def run_once(self, owner: str) -> bool:
        """Lease what is due and take it as far as it goes; False if there was nothing."""
        until, least = utcnow() + timedelta(seconds=self._lease_seconds), self._era.now().least
        leased = self._database.transact(
            lambda connection: leasing.lease(
                connection, owner, list(self._kinds), self._batch, self._lease_seconds, least
            )
        )
        if not leased:
            return False
        if len(leased) == self._batch:
            self._work_signal.notify()  # there may be more, for another thread
        BATCH.observe(len(leased))
        lease = Lease(owner, [operation.id for operation in leased], until)
        with self._leases.holding(lease):
            works = self._with_servers(leased, lease)
            for _ in range(_MOST_STEPS):
                self._run_to_checkpoint(works)
                if self._stopping.is_set():
                    _hand_over(works)
                works = self._keep(lease, works)
                if not works:
                    break
        return True

    def _with_servers(self, leased: Sequence[Operation], lease: Lease) -> list[Work[Any]]:
        """By project, so that what is written for several projects is always locked in the same order."""
        with self._database.read() as connection:
            by_id = servers.by_id(connection, {operation.server_id for operation in leased})
        works, unreadable = [], []
        for operation in leased:
            read = partial(msgspec.convert, type=self._kinds[operation.kind].state)
            try:
                works.append(Work(operation, by_id[operation.server_id], lease, read))
            except msgspec.ValidationError as error:
                LOG.error("operation %d (%s) is left alone: %s", operation.id, operation.kind, error)
                unreadable.append(operation)
        if unreadable:
            self._leave(lease, unreadable)
        return sorted(works, key=lambda work: work.server.project_id)

    def _leave(self, lease: Lease, unreadable: Sequence[Operation]) -> None:
        """A newer release may have written these, so they are left to one that understands them."""
        due_at = utcnow() + timedelta(seconds=_LAST_RETRY_SECONDS)

        def write(connection: sa.Connection) -> None:
            mine = leasing.still_mine(connection, lease.owner, [operation.id for operation in unreadable])
            left = [Checkpoint(operation, due_at) for operation in unreadable if operation.id in mine]
            checkpoints.save(connection, left)

        self._database.transact(write)
        for operation in unreadable:
            UNREADABLE.labels(operation.kind).inc()

    def _run_to_checkpoint(self, works: Sequence[Work[Any]]) -> None:
        """One server that a step can't be done for must not keep the others of its batch from going on."""
        works = [work for work in works if not self._cancel(work)]
        for work in works:
            self._notices.begun(self._kinds[work.operation.kind], work)
        for breakdown in self._run_steps(works):
            alone = len(breakdown.works) == 1 or isinstance(breakdown.error, _OUTAGES)
            for work in breakdown.works:
                work.rewind()
                found = [breakdown] if alone else self._run_steps([work])
                if found:
                    self._put_off(work, found[0].error)

    def _cancel(self, work: Work[Any]) -> bool:
        """Whether it goes the way back now, in the place of its step."""
        operation = work.operation
        if operation.cancel_reason is None or not self._may_cancel(operation):
            return False
        kind, step = operation.kind, operation.step
        try:
            with context.working(work.context):
                self._kinds[kind].cancel(work, operation.cancel_reason)
        except Exception as error:
            LOG.exception("%s of server %s can't be cancelled at %s", kind, operation.server_uuid, step)
            self._put_off(work, error)
            return True
        self._check(kind, step, [work])
        return True

    def _may_cancel(self, operation: Operation) -> bool:
        return self._steps.get((operation.kind, operation.step), Step(operation.step)).cancel.now

    def _run_steps(self, works: Sequence[Work[Any]]) -> list[_Breakdown]:
        """Step after step, until each has come to a checkpoint or has broken down."""
        broken: list[_Breakdown] = []
        for _ in range(_MOST_STEPS):
            groups: dict[tuple[str, str], list[Work[Any]]] = defaultdict(list)
            for work in works:
                work.goes_on = False
                groups[work.operation.kind, work.operation.step].append(work)
            works = []
            for (kind, step), group in groups.items():
                STEPS.labels(kind, step).inc(len(group))
                try:
                    with context.working_together({work.server.uuid: work.context for work in group}):
                        self._kinds[kind].run(step, group)
                except Exception as error:
                    _tell(kind, step, group, error)
                    broken.append(_Breakdown(group, error))
                    continue
                self._check(kind, step, group)
                works += [work for work in group if work.goes_on]
            if not works:
                break
        return broken

    def _check(self, kind: str, step: str, group: Sequence[Work[Any]]) -> None:
        """The graphs that people read are drawn from what kinds declare, so it has to be true."""
        declared = self._steps.get((kind, step), Step(step)).followers
        for work in group:
            if work.outcome is None and work.operation.step not in declared:
                UNDECLARED.labels(kind, step, work.operation.step).inc()
                LOG.error("%s goes from %s to %s, which it does not declare", kind, step, work.operation.step)

    def _put_off(self, work: Work[Any], error: Exception) -> None:
        """Something that is nobody's decision went wrong: try again a bounded number of times."""
        work.rewind()
        operation = work.operation
        if operation.tries >= _MOST_TRIES:
            try:
                with context.working(work.context):
                    self._kinds[operation.kind].give_up(work, f"{type(error).__name__}: {error}")
                return
            except Exception:
                LOG.exception("%s of server %s can't be given up", operation.kind, operation.server_uuid)
                work.rewind()
        pause = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2 ** min(operation.tries, _MOST_TRIES))
        work.try_again(operation.step, pause, f"{type(error).__name__}: {error}")

    def _keep(self, lease: Lease, works: Sequence[Work[Any]]) -> list[Work[Any]]:
        """Write down what the steps decided, for those that are still ours; what goes on at once."""
        try:
            mine = self._write_down(lease, works)
        except sa.exc.OperationalError:
            raise
        except Exception as error:
            LOG.exception("%d operations could not be kept", len(works))
            if len(works) > 1:  # one of them spoils it for the others: give each a transaction of its own
                return [going_on for work in works for going_on in self._keep(lease, [work])]
            self._put_off(works[0], error)
            mine = self._write_down(lease, works)
        kept = [work for work in works if work.operation.id in mine]
        for work in kept:
            work.operation.cancel_reason = mine[work.operation.id]
        if lost := len(works) - len(kept):
            FENCED.inc(lost)
            LOG.info("%d operations were taken or ended while we were at them", lost)
        for work in kept:
            self._notices.told(work)
            self._step_log.tell(work)
            if work.outcome is not None:
                self._notices.ended(self._kinds[work.operation.kind], work)
        going_on = [work for work in kept if work.outcome is None and work.due_at is None]
        for work in kept:
            work.kept()
        return going_on

    def _write_down(self, lease: Lease, works: Sequence[Work[Any]]) -> dict[int, str | None]:
        """The ids of those that were still ours, and why one is to be cancelled, if it is."""
        now, owner = utcnow(), lease.owner
        lease_end = now + timedelta(seconds=self._lease_seconds)
        before = {work.operation.id: work.operation.data for work in works}
        for work in works:
            work.remember()

        def write(connection: sa.Connection) -> dict[int, str | None]:
            ids = [work.operation.id for work in works]
            mine = leasing.still_mine(connection, owner, ids)
            if len(mine) < len(ids):
                leasing.give_back_lost(connection, owner, [each for each in ids if each not in mine])
            kept = [work for work in works if work.operation.id in mine]
            _write(connection, kept, now)
            going_on = [work for work in kept if work.outcome is None]
            checkpoints.save(
                connection,
                [
                    Checkpoint(
                        work.operation, self._next_look(work, mine, now), work.used_result, work.trouble
                    )
                    if work.due_at is not None
                    else Checkpoint(work.operation, now, work.used_result, None, owner, lease_end)
                    for work in going_on
                ],
            )
            ended = [work for work in kept if work.outcome is not None]
            checkpoints.finish(
                connection, [Completion(work.operation, work.outcome or "", work.error) for work in ended]
            )
            actions.finish(
                connection,
                {
                    work.operation.action_id: work.error
                    for work in ended
                    if work.operation.action_id is not None
                },
            )
            return mine

        try:
            mine = self._database.transact(write)
        except Exception:
            for work in works:  # what the ledger has is what it had
                work.operation.data = before[work.operation.id]
            raise
        lease.until = lease_end
        return mine

    def _next_look(self, work: Work[Any], mine: Mapping[int, str | None], now: datetime) -> datetime:
        """One that was cancelled meanwhile does not wait for anything any more."""
        is_cancelled = mine[work.operation.id] is not None and self._may_cancel(work.operation)
        return now if is_cancelled or work.due_at is None else work.due_at


def _hand_over(works: Sequence[Work[Any]]) -> None:
    """To whichever conductor looks next: a lease that we kept would have to run out first."""
    for work in works:
        if work.outcome is None and work.due_at is None:
            work.due_at = utcnow()


def _write(connection: sa.Connection, works: Sequence[Work[Any]], now: datetime) -> None:
    """What the steps want written, many servers to a statement."""
    changes: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    parts: dict[WriteTogether, list[Any]] = defaultdict(list)
    for work in works:
        with context.working(work.context):
            for effect in work.writes:
                effect(connection)
        for writer, part in work.parts:
            parts[writer].append(part)
        if work.changes:
            row = {f"new_{name}": value for name, value in work.changes.items()}
            changes[tuple(sorted(work.changes))].append({"of": work.server.id, "now": now, **row})
    for writer, its_parts in parts.items():
        writer(connection, its_parts)
    for columns, rows in changes.items():
        connection.execute(_change_of(columns), rows)


@lru_cache(maxsize=256)
def _change_of(columns: tuple[str, ...]) -> sa.Update:
    """Steps change few sets of columns, again and again."""
    values: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in columns}
    change = sa.update(server_table).where(server_table.c.id == sa.bindparam("of"))
    return change.values(updated_at=sa.bindparam("now"), **values)
