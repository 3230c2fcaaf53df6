"""Anti-affinity groups have so many members on one machine at the most, usually one."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState
from moorage.scheduler.server_group import ServerGroupPolicy


class AntiAffinityFilter:
    name = "anti-affinity"

    def applies(self, request: Criteria) -> bool:
        return (
            request.server_group is not None
            and request.server_group.policy is ServerGroupPolicy.ANTI_AFFINITY
        )

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        group = request.server_group
        here = 0 if group is None else group.on(host.node_uuid)
        if group is None or here < group.max_per_node:
            return None
        return Reason(ReasonKind.TOO_MANY_OF_THE_GROUP, count=here, most=group.max_per_node)
