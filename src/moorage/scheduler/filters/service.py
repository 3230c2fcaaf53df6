"""A host must be alive, and not disabled: the trait that says so may lag behind the operator."""

from __future__ import annotations

from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Reason, ReasonKind
from moorage.scheduler.hosts import HostState

_DOWN = Reason(ReasonKind.HOST_DOWN)
_DISABLED = Reason(ReasonKind.HOST_DISABLED)


class ServiceFilter:
    name = "service"

    def applies(self, request: Criteria) -> bool:
        return True

    def objection(self, host: HostState, request: Criteria) -> Reason | None:
        if host.disabled:
            return _DISABLED
        return None if host.up else _DOWN
