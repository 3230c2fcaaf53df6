"""A bound on the servers of one node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState


@dataclass(frozen=True, slots=True)
class ServerCountFilter:
    name: ClassVar[str] = "server count"
    most: int

    def applies(self, request: Criteria) -> bool:
        return True

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        if host.servers < self.most:
            return None
        return Reason(ReasonKind.TOO_MANY_SERVERS, count=host.servers, most=self.most)
