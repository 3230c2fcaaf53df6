"""A host must be in and out of the aggregates that prefilters chose: Placement's mirror may lag behind."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState

_CHANGED = Reason(ReasonKind.AGGREGATES_CHANGED)


class AggregatesFilter:
    name = "aggregates"

    def applies(self, request: Criteria) -> bool:
        return bool(request.narrowings)

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        if all(narrowing.admits(host.aggregates) for narrowing in request.narrowings):
            return None
        return _CHANGED
