"""What a weigher is, and how the opinions of several are made comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moorage.scheduler.option import Option
from moorage.scheduler.request import Request


class Weigher(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def multiplier(self) -> float:
        """How much this opinion counts; below 0 it counts the other way round."""

    @property
    def lowest(self) -> float | None:
        """What becomes 0; None for the least that any option has."""

    def applies(self, request: Request) -> bool:
        """Whether it has an opinion on such a request at all."""

    def weigh(self, option: Option, request: Request) -> float:
        """More is better."""


def shares(weigher: Weigher, options: Sequence[Option], request: Request) -> list[float]:
    """What a weigher adds to each option: its opinion, made to lie between 0 and 1, times its multiplier."""
    raw = [weigher.weigh(option, request) for option in options]
    if weigher.lowest is None:
        lowest = min(raw)
    else:
        lowest = weigher.lowest
        raw = [max(value, lowest) for value in raw]
    span = max(raw) - lowest
    if span == 0:
        return [0.0] * len(raw)
    scale = weigher.multiplier / span
    return [(value - lowest) * scale for value in raw]
