"""Hosts with more free processors come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.option import HostOption


@dataclass(frozen=True, slots=True)
class CpuWeigher:
    name: ClassVar[str] = "cpu"
    lowest: ClassVar[float | None] = 0.0
    multiplier: float

    def applies(self, request: Criteria) -> bool:
        return True

    def weigh(self, option: HostOption, request: Criteria) -> float:
        return option.free("VCPU") + option.free("PCPU")
