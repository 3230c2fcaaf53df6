"""Projects that have aggregates of their own stay in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class TenantIsolation:
    aggregates_of: Mapping[str, frozenset[str]]
    """By project: the aggregates that are set apart for it."""
    required: bool = False
    """Whether a project without an aggregate may go nowhere, rather than anywhere."""

    def narrow(self, request: Request) -> Request:
        aggregates = self.aggregates_of.get(request.project_id, frozenset())
        if aggregates:
            return request.narrowed(lambda group: group.in_one_of(aggregates))
        if self.required:
            raise NoHostAllowedError("No hosts are set apart for this project.")
        return request
