"""Aggregates that only take servers which ask for their traits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.narrowing import NarrowedBy
from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class IsolatedAggregates:
    traits_of: Mapping[str, frozenset[str]]
    """By aggregate: the traits without which a server must stay out."""

    def narrow(self, request: Request) -> Request:
        asked = frozenset().union(request.root_required, *(group.required_traits for group in request.groups))
        closed = {uuid: traits - asked for uuid, traits in self.traits_of.items() if not traits <= asked}
        missing = frozenset().union(*closed.values())
        return request.outside(frozenset(closed), NarrowedBy.TRAITS, ", ".join(sorted(missing)))
