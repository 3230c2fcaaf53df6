"""An administrator may ask for a host; Placement knows nodes only."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState


class RequestedHostFilter:
    name = "requested host"

    def applies(self, request: Criteria) -> bool:
        return request.host is not None

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        if host.host == request.host:
            return None
        return Reason(ReasonKind.NOT_THE_HOST_ASKED_FOR, request.host or "")
