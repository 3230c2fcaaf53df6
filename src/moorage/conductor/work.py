"""One operation in a conductor's hands, and what the step that it is at decides about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from moorage.conductor.ledger import Operation
from moorage.core.clock import utcnow

Write = Callable[[Connection], None]


@dataclass(slots=True)
class Work:
    """A step says what comes next (`advance`, `wait`, `finish`, `fail`) and what is written along with it.

    Nothing is written before the whole batch's checkpoint, and then only if the lease still holds.
    """

    operation: Operation
    server: dict[str, Any]
    """The server's row, as it was when the step began."""
    changes: dict[str, Any] = field(default_factory=dict)
    """Columns of the server's row to set."""
    writes: list[Write] = field(default_factory=list)
    used_result: bool = False
    due_at: datetime | None = None
    """None: go on at once with the operation's step."""
    outcome: str | None = None
    error: str | None = None

    @property
    def data(self) -> dict[str, Any]:
        return self.operation.data

    def take_result(self) -> dict[str, Any] | None:
        """The agent's result, if it is there; it is used up by this."""
        result, self.operation.result = self.operation.result, None
        self.used_result = result is not None
        return result

    def advance(self, step: str) -> None:
        """This step is done; the next one follows at once."""
        self.operation.step = step
        self.operation.tries = 0
        self.due_at = None

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
