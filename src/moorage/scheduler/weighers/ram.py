"""Hosts with more free memory come first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moorage.scheduler.option import HostOption
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class RamWeigher:
    name: ClassVar[str] = "ram"
    lowest: ClassVar[float | None] = 0.0
    multiplier: float

    def applies(self, request: Request) -> bool:
        return True

    def weigh(self, option: HostOption, request: Request) -> float:
        return option.free("MEMORY_MB")
