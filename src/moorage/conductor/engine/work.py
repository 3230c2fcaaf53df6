"""One operation in a conductor's hands, and what the step that it is at decides about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from moorage.bus.notifications import Phase
from moorage.compute.servers.server import Server
from moorage.core.clock import utcnow
from moorage.core.context import WorkContext
from moorage.ledger.held_leases import Lease
from moorage.ledger.operation import Operation

S = TypeVar("S", bound=msgspec.Struct, covariant=True)
"""What a kind of operation remembers from step to step."""

Write = Callable[[Connection], None]
WriteTogether = Callable[[Connection, Sequence[Any]], None]
"""Writes the parts of many servers at once: a hundred builds cost it one statement."""


class Done(msgspec.Struct, frozen=True):
    """The agent did it."""

    facts: dict[str, Any] = {}


class Failed(msgspec.Struct, frozen=True):
    """The agent could not do it."""

    error: str
    retry_elsewhere: bool = False
    facts: dict[str, Any] = {}


class Silent(msgspec.Struct, frozen=True):
    """No result came by the deadline."""


Answer = Done | Failed | Silent


class Notice(NamedTuple):
    """A part of an operation that has a name of its own: `instance.ACTION.PHASE`."""

    action: str
    phase: Phase | None
    """None if it takes no time."""


class _Kept(NamedTuple):
    """An operation as its last checkpoint has it."""

    step: str
    attempt: int
    tries: int
    result: dict[str, Any] | None


@dataclass(slots=True)
class Work(Generic[S]):
    """A step says what comes next (`advance`, `wait`, `finish`, `fail`) and what is written along with it.

    Nothing is written before the whole batch's checkpoint, and then only if the lease still holds.
    """

    operation: Operation
    server: Server
    """As it was when the step began."""
    lease: Lease
    read: Callable[[Any], S]
    """Makes the state of what the ledger has."""
    state: S = field(init=False)
    changes: dict[str, Any] = field(default_factory=dict)
    """Columns of the server's row to set."""
    writes: list[Write] = field(default_factory=list)
    parts: list[tuple[WriteTogether, Any]] = field(default_factory=list)
    used_result: bool = False
    goes_on: bool = False
    """The next step follows without a checkpoint."""
    due_at: datetime | None = None
    """None: go on at once with the operation's step."""
    trouble: str | None = None
    """Why it waits, or has to be tried again, in a sentence."""
    outcome: str | None = None
    error: str | None = None
    notices: list[Notice] = field(default_factory=list)
    """What others shall hear of once it is written down, beside the beginning and the end."""
    _kept: _Kept = field(init=False)
    _server: Server = field(init=False)

    def __post_init__(self) -> None:
        self.state = self.read(self.operation.data)
        self._begin_page()

    @property
    def context(self) -> WorkContext:
        """For whatever is done for it."""
        operation, server = self.operation, self.server
        told = WorkContext(
            project_id=server.project_id,
            user_id=server.user_id,
            server=operation.server_uuid,
            host=server.host or "",
            operation=f"{operation.kind}-{operation.id}-{operation.attempt}",
        )
        return told.of_request(operation.request_ids or "")

    def holds(self) -> bool:
        """Whether this conductor still has the say; a step asks before it takes away what others may use."""
        return self.lease.holds()

    def answer(self) -> Answer:
        """What the agent has said by now; it is used up by this."""
        result, self.operation.result = self.operation.result, None
        self.used_result = result is not None
        if result is None:
            return Silent()
        if result["ok"]:
            return Done(result["facts"])
        return Failed(result["error"], bool(result["retry_elsewhere"]), result["facts"])

    def write_together(self, writer: WriteTogether, part: Any) -> None:
        """At the checkpoint, along with what other servers of the batch have for `writer`."""
        self.parts.append((writer, part))

    def tell(self, action: str, *phases: Phase | None) -> None:
        """Have others hear of a part of the operation; of all of it, if no phases are named."""
        self.notices += [Notice(action, phase) for phase in phases or (Phase.START, Phase.END)]

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
        self.server = self.server.changed(self.changes)

    def advance_to_task(self, step: str) -> None:
        """As `advance`, to a step that gives an agent a new task, which no older result must answer."""
        self.operation.attempt += 1
        self.advance(step)

    def wait(self, step: str, seconds: float, why: str | None = None) -> None:
        """Go on with `step` when a result comes, or after `seconds` at the latest."""
        self.operation.step = step
        self.trouble = why
        self.due_at = utcnow() + timedelta(seconds=seconds)

    def try_again(self, step: str, seconds: float, why: str | None = None) -> None:
        """`step` did not work this time."""
        self.operation.tries += 1
        self.wait(step, seconds, why)

    def finish(self) -> None:
        self.outcome = "done"

    def fail(self, error: str) -> None:
        self.outcome, self.error = "failed", error

    # ------------------------------------------------------------ checkpoints

    def remember(self) -> None:
        """Put the state into what the ledger will have."""
        self.operation.data = msgspec.to_builtins(self.state)

    @property
    def last_step(self) -> str:
        """That of the last checkpoint."""
        return self._kept.step

    def kept(self) -> None:
        """The checkpoint is written: the next step begins on a clean page."""
        if self.operation.step != self.last_step:
            self.operation.step_since = utcnow()
        self.server = self.server.changed(self.changes)
        self._begin_page()

    def rewind(self) -> None:
        """Nothing of what was decided since the last checkpoint counts."""
        operation = self.operation
        operation.step, operation.attempt, operation.tries, operation.result = self._kept
        self.state = self.read(operation.data)
        self.server, self.due_at = self._server, None
        self._begin_page()

    def _begin_page(self) -> None:
        operation = self.operation
        self._kept = _Kept(operation.step, operation.attempt, operation.tries, operation.result)
        self._server = self.server
        self.changes, self.writes, self.parts, self.notices = {}, [], [], []
        self.used_result = self.goes_on = False
        self.outcome = self.error = self.trouble = None
