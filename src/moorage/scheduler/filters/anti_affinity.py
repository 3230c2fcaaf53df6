"""Anti-affinity groups have so many members on one machine at the most, usually one."""

from __future__ import annotations

from moorage.scheduler.filters.contract import Kind, Reason
from moorage.scheduler.hosts import HostState
from moorage.scheduler.request import Request
from moorage.scheduler.server_group import GroupPolicy


class AntiAffinityFilter:
    name = "anti-affinity"

    def objection(self, host: HostState, request: Request) -> Reason | None:
        group = request.server_group
        if group is None or group.policy is not GroupPolicy.ANTI_AFFINITY:
            return None
        here = group.on(host.node_uuid)
        if here < group.max_per_node:
            return None
        return Reason(Kind.TOO_MANY_OF_THE_GROUP, count=here, most=group.max_per_node)
