"""Nodes of a host that failed this server as a host, not as one of its nodes, come after all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.option import HostOption


@dataclass(frozen=True, slots=True)
class FailedHostWeigher:
    name: ClassVar[str] = "failed host"
    lowest: ClassVar[float | None] = None
    multiplier: float = 1_000_000_000.0
    """More than all other opinions together: the same host would fail the server again."""

    def applies(self, request: Criteria) -> bool:
        return bool(request.failed_hosts)

    def weigh(self, option: HostOption, request: Criteria) -> float:
        return -float(option.host.host in request.failed_hosts)
