"""Planning: the decisions of real servers, made for servers that nobody asked for; nothing is claimed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.conductor.deciding import Decider, Pass, Seat
from moorage.scheduler.plan import Plan, Planned


class Planner:
    def __init__(self, decider: Decider) -> None:
        self._decider = decider

    def plan(self, servers: Sequence[Mapping[str, Any]]) -> Plan:
        """Where these would go, one after the other; they are rows that servers would have."""
        seats = [Seat(server) for server in servers]
        this = self._decider.decide(seats)
        return Plan([_planned(seat, this) for seat in seats])


def _planned(seat: Seat, this: Pass) -> Planned:
    if seat.refusal is not None:
        return Planned(None, None, seat.refusal.sentence, seat.trace)
    place = seat.choices[0].place
    return Planned(place, this.board.hosts[place.node_uuid].zone, None, seat.trace)
