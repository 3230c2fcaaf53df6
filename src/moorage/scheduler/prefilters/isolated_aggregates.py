"""Aggregates that only take servers which ask for their traits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class IsolatedAggregates:
    traits_of: Mapping[str, frozenset[str]]
    """By aggregate: the traits without which a server must stay out."""

    def narrow(self, request: Request) -> Request:
        asked = frozenset().union(request.root_required, *(group.required_traits for group in request.groups))
        closed = frozenset(uuid for uuid, traits in self.traits_of.items() if not traits <= asked)
        return request.narrowed(lambda group: group.outside(closed)) if closed else request
