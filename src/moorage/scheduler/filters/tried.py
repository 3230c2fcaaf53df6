"""A node that failed a server is not tried again for it."""

from __future__ import annotations

from moorage.scheduler.filters.contract import Kind, Reason
from moorage.scheduler.hosts import HostState
from moorage.scheduler.request import Request


class TriedFilter:
    name = "tried"

    def applies(self, request: Request) -> bool:
        return bool(request.tried_nodes)

    def objection(self, host: HostState, request: Request) -> Reason | None:
        return Reason(Kind.ALREADY_TRIED) if host.node_uuid in request.tried_nodes else None
