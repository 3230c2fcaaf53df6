"""A conductor that dies when an operation comes to a certain step: the ledger has it, and nobody goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from moorage.conductor.engine.kind import Kind
from moorage.conductor.engine.runner import Runner
from moorage.conductor.engine.work import Work
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import operations
from tests.support.processes import wait_until

_LONG = timedelta(hours=1)


class Interruption:
    """Whoever comes to the step is put off for long, and what an agent said about it is lost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._at: dict[tuple[str, str], int] = {}

    def watch(self, runner: Runner) -> None:
        runner._kinds = {name: _Watched(kind, self) for name, kind in runner._kinds.items()}

    def at(self, kind: str, step: str, failures: int = 0) -> None:
        """Once so many hosts have failed the server."""
        self._at[kind, step] = failures

    def over(self) -> None:
        self._at.clear()

    def strikes(self, work: Work[Any], step: str) -> bool:
        failures = self._at.get((work.operation.kind, step))
        return failures is not None and len(getattr(work.state, "attempts", ())) >= failures

    def await_operation(self, kind: str, step: str) -> sa.Row[Any]:
        """The one that was interrupted, once that is written down."""
        found: list[sa.Row[Any]] = []

        def there() -> bool:
            found[:] = self._interrupted(kind, step)
            return bool(found)

        wait_until(there, f"{kind} to come to {step}", 30)
        return found[0]

    def _interrupted(self, kind: str, step: str) -> Sequence[sa.Row[Any]]:
        query = sa.select(operations).where(
            operations.c.kind == kind,
            operations.c.step == step,
            operations.c.finished_at.is_(None),
            operations.c.lease.is_(None),
            operations.c.due_at > utcnow() + _LONG / 2,
        )
        with self._database.read() as connection:
            return connection.execute(query).all()


class _Watched:
    """A kind of operation as it is, but for the interruption."""

    def __init__(self, kind: Kind, interruption: Interruption) -> None:
        self.name, self.state, self.steps = kind.name, kind.state, kind.steps
        self.notification, self.give_up, self.cancel = kind.notification, kind.give_up, kind.cancel
        self._kind = kind
        self._interruption = interruption

    def run(self, step: str, batch: Sequence[Work[Any]]) -> None:
        struck = [work for work in batch if self._interruption.strikes(work, step)]
        for work in struck:
            if work.operation.result is not None:
                work.answer()
            work.wait(step, _LONG.total_seconds())
        others = [work for work in batch if work not in struck]
        if others:
            self._kind.run(step, others)
