"""Aggregates that are set apart for projects: others stay out of them, and the projects stay in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.errors import NoHostAllowedError
from moorage.scheduler.narrowing import NarrowedBy
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class TenantIsolation:
    aggregates_of: Mapping[str, frozenset[str]]
    """By project: the aggregates that are set apart for it."""
    confined: bool = True
    """Whether a project with aggregates of its own stays in them, or may go elsewhere too."""
    required: bool = False
    """Whether a project without an aggregate may go nowhere, rather than anywhere."""

    def narrow(self, request: Request) -> Request:
        own = self.aggregates_of.get(request.project_id, frozenset())
        if not own and self.required:
            raise NoHostAllowedError("No hosts are set apart for this project.")
        others = frozenset().union(*self.aggregates_of.values()) - own
        request = request.outside(others, NarrowedBy.OTHER_PROJECTS)
        return (
            request.inside(own, NarrowedBy.PROJECT, request.project_id) if own and self.confined else request
        )
