"""Affinity groups stay on the machine that their first member got."""

from __future__ import annotations

from moorage.scheduler.filters.contract import Kind, Reason
from moorage.scheduler.hosts import HostState
from moorage.scheduler.request import Request
from moorage.scheduler.server_group import GroupPolicy

_ELSEWHERE = Reason(Kind.NOT_WITH_THE_GROUP)


class AffinityFilter:
    name = "affinity"

    def objection(self, host: HostState, request: Request) -> Reason | None:
        group = request.server_group
        if group is None or group.policy is not GroupPolicy.AFFINITY or not group.placed:
            return None
        return None if group.on(host.node_uuid) else _ELSEWHERE
