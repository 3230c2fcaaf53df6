"""A kind of operation, as the runner sees it, and what it declares of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from moorage.conductor.engine.work import Work
from moorage.ledger.declared import Step


class Kind(Protocol):
    @property
    def name(self) -> str:
        """By which the ledger knows it."""

    @property
    def state(self) -> type[msgspec.Struct]:
        """What its operations remember from step to step."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """In order, the first one first."""

    @property
    def notification(self) -> str | None:
        """What others hear of it as: `create` for `instance.create.start` and so on; None if nobody does."""

    def run(self, step: str, batch: Sequence[Work[Any]]) -> None:
        """Do a step for all of these, which may each be done twice."""

    def give_up(self, work: Work[Any], error: str) -> None:
        """A step has failed too often, for reasons of ours: leave a state that users can act on."""

    def cancel(self, work: Work[Any], reason: str) -> None:
        """Somebody cancelled it, at a step that allows it: do as the step declares."""
