"""What a weigher is, and how the opinions of several are made comparable."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.option import HostOption


class Weigher(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def multiplier(self) -> float:
        """How much this opinion counts; below 0 it counts the other way round."""

    @property
    def lowest(self) -> float | None:
        """What becomes 0; None for the least that any option has."""

    def applies(self, request: Criteria) -> bool:
        """Whether it has an opinion on such a request at all."""

    def weigh(self, option: HostOption, request: Criteria) -> float:
        """More is better."""


def shares(weigher: Weigher, raw: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What a weigher adds to each option: its opinion, made to lie between 0 and 1, times its multiplier."""
    lowest = raw.min() if weigher.lowest is None else weigher.lowest
    above = np.maximum(raw, lowest) - lowest
    most = above.max()
    return above * (weigher.multiplier / most) if most else above
