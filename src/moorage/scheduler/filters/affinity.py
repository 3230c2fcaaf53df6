"""Affinity groups stay on the machine that their first member got."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState
from moorage.scheduler.server_group import ServerGroupPolicy

_ELSEWHERE = Reason(ReasonKind.NOT_WITH_THE_GROUP)


class AffinityFilter:
    name = "affinity"

    def applies(self, request: Criteria) -> bool:
        return request.server_group is not None and request.server_group.policy is ServerGroupPolicy.AFFINITY

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        group = request.server_group
        if group is None or not group.placed or group.on(host.node_uuid):
            return None
        return _ELSEWHERE
