"""The hint `different_host`: away from all of the servers named."""

from __future__ import annotations

from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState
from moorage.scheduler.request import Request

_HERE = Reason(ReasonKind.NOT_A_DIFFERENT_HOST)


class DifferentHostFilter:
    name = "different host"

    def applies(self, request: Request) -> bool:
        return bool(request.different_nodes)

    def objection(self, host: HostState, request: Request) -> Reason | None:
        return _HERE if host.node_uuid in request.different_nodes else None
