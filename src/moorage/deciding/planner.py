"""Planning: the decisions of real servers, made for servers that nobody asked for; nothing is claimed."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.compute.servers.server import Server
from moorage.deciding.decider import Decider, HostSearch, MoveSource, SchedulingPass
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.scheduler.plan import Plan, Planned


class Planner:
    def __init__(self, decider: Decider, hosts: Hosts) -> None:
        self._decider = decider
        self._hosts = hosts

    def plan(self, servers: Sequence[Subject]) -> Plan:
        """Where these would go, one after the other."""
        searches = [HostSearch(server) for server in servers]
        this = self._decider.decide(searches)
        return Plan([_planned(search, this) for search in searches])

    def plan_move(self, server: Server, target: str | None) -> Planned:
        """Where a server that is on a host would go from there, as it is."""
        assert server.host is not None
        assert server.node_uuid is not None
        source = self._hosts.states([server.node_uuid]).get(server.node_uuid)
        leaving = MoveSource(server.host, server.node_uuid, None if source is None else source.cell)
        search = HostSearch.of_move(Subject.of(server), leaving, server.flavor, target)
        return _planned(search, self._decider.decide([search]))


def _planned(search: HostSearch, this: SchedulingPass) -> Planned:
    if search.refusal is not None:
        return Planned(None, None, search.refusal.sentence, search.trace)
    place = search.choices[0].place
    return Planned(place, this.board.hosts[place.node_uuid].zone, None, search.trace)
