"""A server that is moved goes to another host, in the cell that it has its addresses in.

One that only gets another flavor may stay on its node, where operators allow that.
"""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState

_LEAVES = Reason(ReasonKind.HOST_IT_LEAVES)


class LeavingFilter:
    name = "leaving"

    def applies(self, request: Criteria) -> bool:
        return request.leaves is not None

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        if host.host == request.leaves and not _may_stay(host, request):
            return _LEAVES
        if request.cell is not None and host.cell != request.cell:
            return Reason(ReasonKind.OTHER_CELL, request.cell)
        return None


def _may_stay(host: HostState, request: Criteria) -> bool:
    return host.node_uuid == request.may_stay_on and host.resizes_in_place
