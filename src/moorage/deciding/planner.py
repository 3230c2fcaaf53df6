"""Planning: the decisions of real servers, made for servers that nobody asked for; nothing is claimed."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.compute.servers.server import Server
from moorage.deciding.decider import Decider, HostSearch, MoveSource, SchedulingPass
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.scheduler.hosts import HostState
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
        return self.plan_moves([server], [target])[0]

    def plan_moves(
        self, servers: Sequence[Server], targets: Sequence[str | None] | None = None
    ) -> list[Planned]:
        """Likewise for several, one after the other: each sees what those before it would take."""
        searches = self._searches(servers, targets or [None] * len(servers))
        this = self._decider.decide(searches)
        return [_planned(search, this) for search in searches]

    def nodes_for(self, server: Server, limit: int) -> frozenset[str]:
        """All the nodes that a server could be moved to, of so many as are looked at."""
        (search,) = self._searches([server], [None])
        return self._decider.fitting(search, limit)

    def _searches(self, servers: Sequence[Server], targets: Sequence[str | None]) -> list[HostSearch]:
        sources = self._hosts.states([server.on_node for server in servers])
        return [
            _move(server, sources.get(server.on_node), target)
            for server, target in zip(servers, targets, strict=True)
        ]


def _move(server: Server, source: HostState | None, target: str | None) -> HostSearch:
    assert server.host is not None
    leaving = MoveSource(server.host, server.on_node, None if source is None else source.cell)
    return HostSearch.of_move(Subject.of(server), leaving, server.flavor, target)


def _planned(search: HostSearch, this: SchedulingPass) -> Planned:
    if search.refusal is not None:
        return Planned(None, None, search.refusal.sentence, search.trace)
    place = search.choices[0].place
    return Planned(place, this.board.hosts[place.node_uuid].zone, None, search.trace)
