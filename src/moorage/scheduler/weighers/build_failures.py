"""Hosts that failed builds of late come last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.option import HostOption


@dataclass(frozen=True, slots=True)
class BuildFailureWeigher:
    name: ClassVar[str] = "build failures"
    lowest: ClassVar[float | None] = None
    multiplier: float

    def applies(self, request: Criteria) -> bool:
        return True

    def weigh(self, option: HostOption, request: Criteria) -> float:
        return -option.host.build_failures
