"""Planning: the decisions of real servers, made for servers that nobody asked for; nothing is claimed."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.compute.servers.server import Server
from moorage.deciding.decider import Decider, MoveSource, SchedulingPass, Seat
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.scheduler.plan import Plan, Planned


class Planner:
    def __init__(self, decider: Decider, hosts: Hosts) -> None:
        self._decider = decider
        self._hosts = hosts

    def plan(self, servers: Sequence[Subject]) -> Plan:
        """Where these would go, one after the other."""
        seats = [Seat(server) for server in servers]
        this = self._decider.decide(seats)
        return Plan([_planned(seat, this) for seat in seats])

    def plan_move(self, server: Server, target: str | None) -> Planned:
        """Where a server that is on a host would go from there, as it is."""
        assert server.host is not None
        assert server.node_uuid is not None
        source = self._hosts.states([server.node_uuid]).get(server.node_uuid)
        leaving = MoveSource(server.host, server.node_uuid, None if source is None else source.cell)
        seat = Seat.of_move(Subject.of(server), leaving, server.flavor, target)
        return _planned(seat, self._decider.decide([seat]))


def _planned(seat: Seat, this: SchedulingPass) -> Planned:
    if seat.refusal is not None:
        return Planned(None, None, seat.refusal.sentence, seat.trace)
    place = seat.choices[0].place
    return Planned(place, this.board.hosts[place.node_uuid].zone, None, seat.trace)
