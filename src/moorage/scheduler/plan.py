"""A plan: where servers would go if they were asked for now, each seeing what those before it would take."""

from __future__ import annotations

import msgspec

from moorage.scheduler.trace import Place, Trace


class Planned(msgspec.Struct):
    """One server of a plan: its place, or the sentence that its user would read instead."""

    place: Place | None
    zone: str | None
    sentence: str | None
    trace: Trace

    def as_good(self) -> list[Place]:
        """Other places with the same weight: which of them a server gets is left to chance."""
        ranking = self.trace.ranking
        return [entry.place for entry in ranking[1:] if entry.weight == ranking[0].weight]


class Plan(msgspec.Struct):
    servers: list[Planned]

    def placed(self) -> int:
        return sum(server.place is not None for server in self.servers)
