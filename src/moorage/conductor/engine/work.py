"""One operation in a conductor's hands, and what the step that it is at decides about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.ledger.leases import Lease
from moorage.ledger.ledger import Operation

Write = Callable[[Connection], None]
WriteTogether = Callable[[Connection, Sequence[Any]], None]
"""Writes the parts of many servers at once: a hundred builds cost it one statement."""


@dataclass(slots=True)
class Work:
    """A step says what comes next (`advance`, `wait`, `finish`, `fail`) and what is written along with it.

    Nothing is written before the whole batch's checkpoint, and then only if the lease still holds.
    """

    operation: Operation
    server: dict[str, Any]
    """The server's row, as it was when the step began."""
    lease: Lease
    changes: dict[str, Any] = field(default_factory=dict)
    """Columns of the server's row to set."""
    writes: list[Write] = field(default_factory=list)
    parts: list[tuple[WriteTogether, Any]] = field(default_factory=list)
    used_result: bool = False
    goes_on: bool = False
    """The next step follows without a checkpoint."""
    due_at: datetime | None = None
    """None: go on at once with the operation's step."""
    outcome: str | None = None
    error: str | None = None

    @property
    def data(self) -> dict[str, Any]:
        return self.operation.data

    def holds(self) -> bool:
        """Whether this conductor still has the say; a step asks before it takes away what others may use."""
        return self.lease.holds()

    def take_result(self) -> dict[str, Any] | None:
        """The agent's result, if it is there; it is used up by this."""
        result, self.operation.result = self.operation.result, None
        self.used_result = result is not None
        return result

    def write_together(self, writer: WriteTogether, part: Any) -> None:
        """At the checkpoint, along with what other servers of the batch have for `writer`."""
        self.parts.append((writer, part))

    def advance(self, step: str) -> None:
        """This step is done and kept; the next one follows at once."""
        self.operation.step = step
        self.operation.tries = 0
        self.due_at = None

    def go_on(self, step: str) -> None:
        """This step need not be kept by itself: after a crash, doing it over with the next one is fine."""
        self.operation.step = step  # but tries count on: only a checkpoint is progress
        self.due_at = None
        self.goes_on = True
        self.server = {**self.server, **self.changes}

    def kept(self) -> None:
        """The checkpoint is written: the next step begins on a clean page."""
        self.server = {**self.server, **self.changes}
        self.changes, self.writes, self.parts, self.used_result = {}, [], [], False

    def forget(self) -> None:
        """Nothing of what was decided since the last checkpoint counts."""
        self.changes, self.writes, self.parts, self.outcome = {}, [], [], None

    def advance_to_task(self, step: str) -> None:
        """As `advance`, to a step that gives an agent a new task, which no older result must answer."""
        self.operation.attempt += 1
        self.advance(step)

    def wait(self, step: str, seconds: float) -> None:
        """Go on with `step` when a result comes, or after `seconds` at the latest."""
        self.operation.step = step
        self.due_at = utcnow() + timedelta(seconds=seconds)

    def try_again(self, step: str, seconds: float) -> None:
        """`step` did not work this time."""
        self.operation.tries += 1
        self.wait(step, seconds)

    def finish(self) -> None:
        self.outcome = "done"

    def fail(self, error: str) -> None:
        self.outcome, self.error = "failed", error
