"""The hint `same_host`: next to one of the servers named."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState

_ELSEWHERE = Reason(ReasonKind.NOT_THE_SAME_HOST)


class SameHostFilter:
    name = "same host"

    def applies(self, request: Criteria) -> bool:
        return request.same_nodes is not None

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        if request.same_nodes is None or host.node_uuid in request.same_nodes:
            return None
        return _ELSEWHERE
