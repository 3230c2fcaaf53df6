"""How an operation stands: at work, waiting, planned, stuck; and what it waits for, in a sentence.

An operation is stuck if, by the ledger's own reckoning, it does not come forward: it is due and no conductor
comes, its step fails again and again, or it has waited at one step for longer than that step declares.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from moorage.compute.operations.recorded import RecordedOperation
from moorage.ledger.declared import Declarations, Step
from moorage.ledger.operation import FIRST_STEP

STUCK_TRIES = 3
"""So often in a row a step has failed, or an agent has not answered, before somebody should look."""
_TIME = "%Y-%m-%d %H:%M:%S"


class State(StrEnum):
    ENDED = "ended"
    PLANNED = "planned"
    """Nobody has begun with it, and nobody shall before a certain time."""
    WORKING = "working"
    """A conductor has its lease."""
    DUE = "due"
    """A conductor takes it next."""
    WAITING = "waiting"


class Stuck(StrEnum):
    """Why an operation does not come forward."""

    UNATTENDED = "unattended"
    """It is due for longer than a lease lasts, and nobody has it."""
    FAILING = "failing"
    """Its step has failed, or its agent has not answered, several times in a row."""
    SLOW = "slow"
    """It waits at its step for longer than the step declares."""


class Standing(msgspec.Struct, frozen=True):
    state: State
    stuck: Stuck | None
    host: str | None
    """The one that it is about now."""
    since: datetime
    """When it came to its step."""
    sentence: str


class Onlooker:
    """Who knows what kinds declare, and how long a lease lasts."""

    def __init__(self, declarations: Declarations, lease_seconds: float = 30.0) -> None:
        self._declarations = declarations
        self._lease = timedelta(seconds=lease_seconds)

    def look(self, operation: RecordedOperation, now: datetime) -> Standing:
        step, host = self.step(operation), self._host(operation)
        state = state_of(operation, now)
        stuck = self._stuck(state, step, operation, now)
        return Standing(state, stuck, host, _since(operation), _sentence(operation, state, stuck, step, host))

    def step(self, operation: RecordedOperation) -> Step | None:
        """What is declared of the step that it is at; None for what only another release knows."""
        kind = self._declarations.get(operation.kind)
        return None if kind is None else kind.steps.get(operation.step)

    def steps(self, operation: RecordedOperation) -> list[Step]:
        """All that an operation of its kind may go through."""
        kind = self._declarations.get(operation.kind)
        return [] if kind is None else list(kind.steps.values())

    def _host(self, operation: RecordedOperation) -> str | None:
        kind, step = self._declarations.get(operation.kind), self.step(operation)
        if kind is None or step is None or step.waits is None:
            return operation.host
        try:
            state = msgspec.convert(operation.data, kind.state)
        except msgspec.ValidationError:  # a newer release has written it
            return operation.host
        return kind.ends(state, operation.host).get(step.waits.end) or operation.host

    def _stuck(
        self, state: State, step: Step | None, operation: RecordedOperation, now: datetime
    ) -> Stuck | None:
        if state in (State.ENDED, State.PLANNED):
            return None
        if state is State.DUE and now - _free_since(operation) > self._lease:
            return Stuck.UNATTENDED
        if operation.tries >= STUCK_TRIES:
            return Stuck.FAILING
        waits = None if step is None else step.waits
        if waits is not None and now - _since(operation) > timedelta(seconds=waits.patience):
            return Stuck.SLOW
        return None


def state_of(operation: RecordedOperation, now: datetime) -> State:
    if operation.finished_at is not None or operation.due_at is None:
        return State.ENDED
    if operation.leased_until is not None and operation.leased_until > now:
        return State.WORKING
    if operation.due_at <= now:
        return State.DUE
    begun = operation.step != FIRST_STEP or operation.step_since is not None or operation.tries > 0
    return State.WAITING if begun else State.PLANNED


def _since(operation: RecordedOperation) -> datetime:
    return operation.step_since or operation.created_at


def _free_since(operation: RecordedOperation) -> datetime:
    """Since when a conductor could have taken it."""
    return max(moment for moment in (operation.due_at, operation.leased_until) if moment is not None)


def _sentence(
    operation: RecordedOperation, state: State, stuck: Stuck | None, step: Step | None, host: str | None
) -> str:
    if state is State.ENDED:
        return f"{operation.outcome}: {operation.error}" if operation.error else operation.outcome or "ended"
    told = _waits_for(operation, state, stuck, step, host)
    if operation.tries:
        told += f"; {operation.tries} tries in a row came to nothing"
    if operation.trouble is not None:
        told += f": {operation.trouble}"
    if operation.cancel_reason is not None:
        told += "; it is to be cancelled"
    return told


def _waits_for(
    operation: RecordedOperation, state: State, stuck: Stuck | None, step: Step | None, host: str | None
) -> str:
    if state is State.PLANNED:
        return f"begins at {operation.due_at:{_TIME}}"
    if state is State.WORKING:
        return f"conductor {operation.lease} is at it"
    if stuck is Stuck.UNATTENDED and step is None:
        return f"waits for a conductor of a release that knows {operation.kind} at {operation.step}"
    if stuck is Stuck.UNATTENDED:
        return f"waits for a conductor, since {_free_since(operation):{_TIME}}"
    if state is State.DUE:
        return "is taken by a conductor next"
    if step is None or step.waits is None:
        return f"is tried again at {operation.due_at:{_TIME}}"
    return f"waits for {step.waits.told(host)}"
