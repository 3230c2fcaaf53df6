"""Of hosts that offer the same machines, those with fewer servers come first: their work is spread evenly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.option import HostOption

_PARTS = frozenset({"VCPU", "PCPU"})


@dataclass(frozen=True, slots=True)
class PoolWeigher:
    name: ClassVar[str] = "servers in the pool"
    lowest: ClassVar[float | None] = None
    multiplier: float

    def applies(self, request: Criteria) -> bool:
        """A pool has machines, and no parts of one."""
        return all(_PARTS.isdisjoint(group.resources) for group in request.groups)

    def weigh(self, option: HostOption, request: Criteria) -> float:
        return -option.host.servers if option.host.pool else 0
