"""A node that failed a server is not tried again for it, nor is a cell that has no address left."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState


class TriedFilter:
    name = "tried"

    def applies(self, request: Criteria) -> bool:
        return bool(request.tried_nodes or request.full_cells)

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        if host.node_uuid in request.tried_nodes:
            return Reason(ReasonKind.ALREADY_TRIED)
        return Reason(ReasonKind.CELL_FULL, host.cell) if host.cell in request.full_cells else None
