"""Deciding: which hosts a batch of servers should have. Nothing is claimed, so a plan is made with it too.

Servers that ask for the same share one question to Placement. All decisions of a batch are made against one
board, so that each sees what the ones before it took.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.db.database import Database
from moorage.deciding import port_needs, surroundings
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.deciding.surroundings import Surroundings
from moorage.placement.client.contract import Candidates, PlacementClient, PlacementRefusedError
from moorage.scheduler import hints, offers
from moorage.scheduler.aggregates import AggregateFacts
from moorage.scheduler.board import Board
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.hosts import HostState
from moorage.scheduler.narrowing import Narrowing
from moorage.scheduler.offers import Offers
from moorage.scheduler.prefilters import contract as prefilters
from moorage.scheduler.prefilters.availability_zone import AvailabilityZone
from moorage.scheduler.prefilters.enabled_hosts import EnabledHosts
from moorage.scheduler.prefilters.image_traits import ImageTraits
from moorage.scheduler.prefilters.only_machines import OnlyMachines
from moorage.scheduler.prefilters.only_targets import OnlyTargets
from moorage.scheduler.request import Request, TargetNodes, from_flavor
from moorage.scheduler.select import Choice, Decision, Selector
from moorage.scheduler.server_group import ServerGroupState
from moorage.scheduler.settings import SchedulerSettings
from moorage.scheduler.story import sentence
from moorage.scheduler.trace import Attempt, Emptiness, NearMiss, Trace, excluded_by_aggregates

Query = tuple[tuple[str, str], ...]
WIDENING = 8
"""So many times more candidates are asked for if none of those found will do."""


@dataclass(frozen=True, slots=True)
class NoHost:
    """Nothing fits; `hopeless` if waiting can't change that."""

    sentence: str
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class MoveSource:
    """A server that is on a host already, and is to go to another one."""

    host: str
    node_uuid: str
    cell: str | None
    migration_uuid: str = ""
    """Holds in Placement what the server has on its host, once it has a place elsewhere; nobody in a plan."""
    may_stay: bool = False
    """On its node, with another flavor."""


@dataclass(slots=True)
class HostSearch:
    """The search for a host for one server of the batch."""

    server: Subject
    tried_nodes: frozenset[str] = frozenset()
    leaving: MoveSource | None = None
    full_cells: frozenset[str] = frozenset()
    """Where there was no address for it."""
    failed_hosts: frozenset[str] = frozenset()
    """Where its ports could not be bound."""
    looked_further: bool = False
    """More candidates were asked for, since the best was on such a host: once is enough."""
    request: Request | None = None
    queries: tuple[Query, ...] = ()
    """Several only if there are several nodes that it may be on, and no others."""
    decision: Decision | None = None
    choices: list[Choice] = field(default_factory=list)
    """What is left to try, best first."""
    refusal: NoHost | None = None
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What a server that moves has at its source."""
    generation: int | None = None
    """Of what the server holds from before; None if it holds nothing."""
    disputed: bool = False
    """Another conductor has claimed for this server, or may have."""
    host: HostState | None = None
    """Where it goes, once that is claimed."""
    attempts: list[Attempt] = field(default_factory=list)
    """What came of the choices so far, those of earlier decisions too."""

    @classmethod
    def of_move(
        cls,
        server: Subject,
        leaving: MoveSource,
        flavor: Mapping[str, Any],
        target: str | None,
        tried_nodes: frozenset[str] = frozenset(),
    ) -> HostSearch:
        """For the server as it shall be. Where it was asked to go when it was made counts no longer."""
        request = {**server.request, "host": target, "node": None, "forced": False}
        return cls(replace(server, flavor=flavor, request=request), tried_nodes, leaving)

    @property
    def query(self) -> Query:
        """All that was asked for, as the trace shows it."""
        return tuple(dict.fromkeys(pair for query in self.queries for pair in query))

    @property
    def one_by_one(self) -> bool:
        """Whether it has to be one of a few nodes: all that Placement knows of these, it says at once."""
        return self.request is not None and bool(self.request.only_nodes())

    @property
    def targets(self) -> frozenset[str]:
        """Nodes that are as good as any to tell why the one or the host that it has to have won't do."""
        assert self.request is not None
        target = self.request.targets
        host = {target.together} if target is not None and target.together is not None else ()
        return self.request.only_nodes() or frozenset(host)

    @property
    def trace(self) -> Trace:
        """The record of the decision, also of one that could not be made."""
        if self.decision is not None:
            return self.decision.trace
        problem = self.refusal.sentence if self.refusal else ""
        return Trace(self.server.uuid, [], problem=problem, attempts=self.attempts)


class SchedulingPass:
    """One batch's decisions: the board that they are made on, and what Placement said about emptiness."""

    def __init__(self, facts: AggregateFacts) -> None:
        self.facts = facts
        self.board = Board({})
        self.emptiness: dict[Query, Emptiness | None] = {}
        self.excluded: dict[str, int | None] = {}
        """By condition on aggregates: how many providers it excludes."""


class Decider:
    def __init__(
        self,
        database: Database,
        hosts: Hosts,
        aggregates: KnownAggregates,
        placement: PlacementClient,
        settings: SchedulerSettings,
        *,
        default_zone: str,
    ) -> None:
        self._database = database
        self._hosts = hosts
        self._aggregates = aggregates
        self._placement = placement
        self._settings = settings
        self._selector = Selector(settings)
        self._default_zone = default_zone

    def decide(self, searches: Sequence[HostSearch]) -> SchedulingPass:
        """Give each search its choices, best first, or its refusal."""
        this = SchedulingPass(self._aggregates.facts())
        self._ask(searches, this.facts)
        undecided = [search for search in searches if search.refusal is None]
        while undecided:
            undecided = self._decide_all(undecided, this)
        return this

    def fitting(self, search: HostSearch, limit: int) -> frozenset[str]:
        """All the nodes that would do, of so many candidates as Placement is asked for."""
        this = SchedulingPass(self._aggregates.facts())
        self._ask([search], this.facts)
        if search.request is None:
            return frozenset()
        search.queries = tuple(_with_limit(query, limit) for query in search.queries)
        answers = {query: self._candidates(query) for query in search.queries}
        offered = self._offered([search], answers, this)
        if not offered:
            return frozenset()
        return self._selector.fitting(search.request, _together(list(offered.values())), this.board)

    def none_left(self, search: HostSearch, this: SchedulingPass) -> None:
        """The search stays empty: find out why."""
        trace = search.trace
        trace.chosen = None
        query = tuple(pair for pair in search.queries[0] if pair[0] != "limit")
        if query not in this.emptiness:
            why = self._placement.why(query)
            this.emptiness[query] = None if why is None else Emptiness.of(why)
        trace.why = this.emptiness[query]
        if trace.why is not None:
            trace.narrowings = [self._counted(narrowing, this) for narrowing in trace.narrowings]
        if search.targets:
            trace.why = self._known_of_targets(search, trace.why)
        search.refusal = NoHost(sentence(trace))

    def _known_of_targets(self, search: HostSearch, why: Emptiness | None) -> Emptiness:
        """What we know ourselves of the nodes asked for, if that says it all or Placement can't tell."""
        states = self._hosts.states(search.targets).values()
        if why is not None and any(state.up and not state.disabled for state in states):
            return why
        misses = [NearMiss(state.node, [_shortcoming(state)]) for state in states]
        return Emptiness(trees=len(misses), trees_left=0, nearest=misses)

    def _counted(self, narrowing: Narrowing, this: SchedulingPass) -> Narrowing:
        """With the number of providers that it alone excludes, whatever else was asked for."""
        if narrowing.member_of not in this.excluded:
            why = self._placement.why([("resources", "VCPU:1"), ("member_of", narrowing.member_of)])
            this.excluded[narrowing.member_of] = None if why is None else excluded_by_aggregates(why)
        return msgspec.structs.replace(narrowing, excluded=this.excluded[narrowing.member_of])

    # ------------------------------------------------------------ what is asked

    def _ask(self, searches: Sequence[HostSearch], facts: AggregateFacts) -> None:
        around = surroundings.look_up(self._database, [search.server.request for search in searches])
        reach = port_needs.look_up(self._placement, [search.server.request for search in searches])
        for search in searches:
            try:
                search.request = reach.narrow(self._request(search, around, facts), search.server.request)
            except SchedulingError as error:
                search.refusal = NoHost(str(error), hopeless=True)
        counts: dict[Query, int] = {}
        for search in searches:
            if search.request is not None:
                question = _question(search.request)
                counts[question] = counts.get(question, 0) + 1
        for search in searches:
            if search.request is not None:
                limit = self._settings.max_candidates + counts[_question(search.request)]
                search.queries = tuple(map(tuple, search.request.queries(limit)))
                search.looked_further = False

    def _request(self, search: HostSearch, around: Surroundings, facts: AggregateFacts) -> Request:
        server = search.server
        asked = server.request
        properties = (asked.get("image") or {}).get("properties") or {}
        request = from_flavor(
            server.uuid,
            server.flavor,
            properties,
            project_id=server.project_id,
            zone=None if asked.get("forced") else server.requested_zone,
            host=asked.get("host"),
            server_group=_group(search, around),
            tried_nodes=search.tried_nodes,
            aliases=self._settings.pci_aliases,
        )
        if search.full_cells or search.failed_hosts:
            request = replace(request, full_cells=search.full_cells, failed_hosts=search.failed_hosts)
        if search.leaving is not None:
            leaving = search.leaving
            may_stay_on = leaving.node_uuid if leaving.may_stay else None
            request = replace(request, leaves=leaving.host, may_stay_on=may_stay_on, cell=leaving.cell)
        request = hints.with_neighbours(request, asked.get("scheduler_hints") or {}, around.node_of)
        host, node = target = surroundings.target_of(asked)
        machines = surroundings.machines_of(asked)
        return prefilters.narrow(
            request,
            (
                EnabledHosts(),
                ImageTraits(properties),
                *self._settings.image_hardware(properties),
                AvailabilityZone(facts.zones, self._default_zone),
                *self._settings.isolation(facts, properties),
                OnlyTargets(node or host, around.targets.get(target, TargetNodes())),
                OnlyMachines(machines, around.may_be_on(machines)),
            ),
        )

    # ------------------------------------------------------------ what is decided

    def _decide_all(self, searches: Sequence[HostSearch], this: SchedulingPass) -> list[HostSearch]:
        """Decide for these; answers those whose candidates were all unfit, to be asked for more of them."""
        answers = {query: self._candidates(query) for query in _queries(searches)}
        by_query = self._offered(searches, answers, this)
        cut_off = []
        for search in searches:
            refusals = [answers[query] for query in search.queries]
            refusal = next((each for each in refusals if isinstance(each, PlacementRefusedError)), None)
            if refusal is not None:
                search.refusal = NoHost(
                    f"Placement refuses what it asks for: {refusal.detail}", hopeless=True
                )
            elif not self._decide_one(search, _together([by_query[query] for query in search.queries]), this):
                search.queries = tuple(map(_wider, search.queries))
                cut_off.append(search)
        return cut_off

    def _offered(
        self,
        searches: Sequence[HostSearch],
        answers: Mapping[Query, Candidates | PlacementRefusedError],
        this: SchedulingPass,
    ) -> dict[Query, Offers]:
        """What Placement offers to these; the board learns of the hosts that it did not know."""
        board = this.board
        found = {query: answer for query, answer in answers.items() if isinstance(answer, Candidates)}
        roots = {root for candidates in found.values() for root in offers.roots(candidates)}
        board.learn(self._hosts.states(roots - board.hosts.keys(), this.facts))
        apart = {
            query: search.request.apart for search in searches if search.request for query in search.queries
        }
        return {
            query: offers.offers(candidates, board.hosts, apart[query]) for query, candidates in found.items()
        }

    def _candidates(self, query: Query) -> Candidates | PlacementRefusedError:
        """A question that makes no sense to Placement is the problem of who asks it, not of the batch."""
        try:
            return self._placement.candidates(query)
        except PlacementRefusedError as error:
            return error

    def _decide_one(self, search: HostSearch, found: Offers, this: SchedulingPass) -> bool:
        """False if a wider question may find a host where this one did not."""
        assert search.request is not None
        search.decision = self._selector.select(search.request, found, this.board, search.query)
        search.decision.trace.attempts = search.attempts
        if not search.one_by_one and (search.decision.cut_off or _looks_further(search, search.decision)):
            return False
        search.choices = list(search.decision.choices)
        if search.choices:
            this.board.take(search.request, search.choices[0].place.node_uuid, search.choices[0].allocations)
        else:
            self.none_left(search, this)
        return True


def _looks_further(search: HostSearch, decision: Decision) -> bool:
    """Whether to look past a host that failed the server; one with very many nodes is not gone through."""
    further = not search.looked_further and decision.settles_for(search.failed_hosts)
    search.looked_further |= further
    return further


def _shortcoming(state: HostState) -> str:
    if state.disabled:
        return "it is disabled"
    if not state.up:
        return "it is down"
    return "it is too full, or lacks something that the server asks for"


def _queries(searches: Sequence[HostSearch]) -> list[Query]:
    return list(dict.fromkeys(query for search in searches for query in search.queries))


def _question(request: Request) -> Query:
    """What requests that share an answer have in common: all but the limit."""
    return tuple(pair for query in request.queries(1) for pair in query if pair[0] != "limit")


def _together(found: Sequence[Offers]) -> Offers:
    """One answer stays itself, since what was worked out of it is kept by it."""
    if len(found) == 1:
        return found[0]
    by_node = {uuid: offer for each in found for uuid, offer in each.by_node.items()}
    return Offers(sum(each.candidates for each in found), by_node)


def _group(search: HostSearch, around: Surroundings) -> ServerGroupState | None:
    """A member that moves is no reason for itself to stay, or to stay away."""
    group = around.groups.get(search.server.request.get("group") or "")
    if group is None or search.leaving is None:
        return group
    members = dict(group.members)
    members[search.leaving.node_uuid] = max(0, members.get(search.leaving.node_uuid, 0) - 1)
    return replace(group, members=members)


def _wider(query: Query) -> Query:
    """The same question with a larger limit."""
    return _with_limit(query, int(dict(query)["limit"]) * WIDENING)


def _with_limit(query: Query, limit: int) -> Query:
    return tuple((name, str(limit) if name == "limit" else value) for name, value in query)
