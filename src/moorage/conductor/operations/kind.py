"""What all kinds of operations have in common: each declares itself at the head of its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from moorage.conductor.engine.work import Work
from moorage.conductor.operations.tools import Tools
from moorage.ledger.declared import Declaration, End, Step


class NoState(msgspec.Struct):
    """The state of an operation that has nothing to remember."""


class OperationKind:
    """A step is a method of the same name, which takes a batch."""

    name: ClassVar[str]
    state: ClassVar[type[msgspec.Struct]] = NoState
    steps: ClassVar[tuple[Step, ...]]
    notification: ClassVar[str | None] = None
    tells: ClassVar[tuple[str, ...]] = ()
    """Parts of it that others hear of by names of their own."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def run(self, step: str, batch: Sequence[Work[Any]]) -> None:
        getattr(self, step)(batch)

    def give_up(self, work: Work[Any], error: str) -> None:
        raise NotImplementedError

    def cancel(self, work: Work[Any], reason: str) -> None:
        """Only at steps that allow it."""
        self.give_up(work, reason)

    @classmethod
    def ends(cls, state: Any, host: str | None) -> Mapping[End, str | None]:
        """The hosts that an operation is about, from what it remembers and its server's host."""
        return {End.SERVER: host}

    @classmethod
    def declaration(cls) -> Declaration:
        """For those who show operations, and run none."""
        return Declaration(cls.name, cls.state, {step.name: step for step in cls.steps}, cls.ends)
