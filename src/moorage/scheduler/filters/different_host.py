"""The hint `different_host`: away from all of the servers named."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState

_HERE = Reason(ReasonKind.NOT_A_DIFFERENT_HOST)


class DifferentHostFilter:
    name = "different host"

    def applies(self, request: Criteria) -> bool:
        return bool(request.different_nodes)

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        return _HERE if host.node_uuid in request.different_nodes else None
