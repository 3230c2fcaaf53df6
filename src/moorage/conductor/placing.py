"""Placing: hosts for a batch of servers, with their claims made.

Servers that ask for the same share one question to Placement. All decisions of a batch are made against one
board, then claimed together; a claim that is refused goes to the server's next choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter, Histogram
from sqlalchemy.engine import Connection

from moorage.conductor.hosts import Hosts
from moorage.conductor.work import Work
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import nodes, server_group_members, server_groups, servers, traces
from moorage.placement.client.contract import (
    Candidates,
    ConsumerClaim,
    PlacementClient,
    PlacementRefusedError,
)
from moorage.scheduler import hints, offers
from moorage.scheduler.board import Board
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.offers import Offers
from moorage.scheduler.prefilters import contract as prefilters
from moorage.scheduler.prefilters.availability_zone import AvailabilityZone
from moorage.scheduler.prefilters.enabled_hosts import EnabledHosts
from moorage.scheduler.prefilters.image_traits import ImageTraits
from moorage.scheduler.prefilters.one_node import OneNode
from moorage.scheduler.request import Request, from_flavor
from moorage.scheduler.select import Choice, Decision, Selector
from moorage.scheduler.server_group import GroupPolicy, ServerGroup
from moorage.scheduler.settings import Settings
from moorage.scheduler.story import sentence
from moorage.scheduler.trace import Attempt, Emptiness, Trace

DECISIONS = Counter("moorage_scheduler_decisions_total", "Decisions made.", ["outcome"])
SECONDS = Histogram(
    "moorage_scheduler_pass_seconds",
    "Time to place a batch of servers.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
Query = tuple[tuple[str, str], ...]
WIDENING = 8
"""So many times more candidates are asked for if none of those found will do."""


@dataclass(frozen=True, slots=True)
class NoHost:
    """Nothing fits; `hopeless` if waiting can't change that."""

    sentence: str
    hopeless: bool = False


@dataclass(slots=True)
class _Seat:
    """One server of the batch, on its way to a host."""

    work: Work
    request: Request | None = None
    query: Query = ()
    decision: Decision | None = None
    choices: list[Choice] = field(default_factory=list)
    outcome: dict[str, Any] | NoHost | None = None


class Placer:
    def __init__(
        self,
        database: Database,
        hosts: Hosts,
        placement: PlacementClient,
        settings: Settings,
        *,
        default_zone: str,
    ) -> None:
        self._database = database
        self._hosts = hosts
        self._placement = placement
        self._settings = settings
        self._selector = Selector(settings)
        self._zone = AvailabilityZone({}, default_zone)

    def hosts_up(self) -> set[str]:
        return self._hosts.up()

    def release(self, batch: Sequence[Work]) -> None:
        """Drop the claims of servers that will not run where they were to."""
        self._placement.release([work.operation.server_uuid for work in batch])

    def place(self, batch: Sequence[Work]) -> list[dict[str, Any] | NoHost]:
        """For each server where it goes, claimed; or why it goes nowhere."""
        with SECONDS.time():
            return self._place(batch)

    def _place(self, batch: Sequence[Work]) -> list[dict[str, Any] | NoHost]:
        seats = [_Seat(work) for work in batch]
        self._ask(seats)
        open_seats = [seat for seat in seats if seat.outcome is None]
        board = Board({})
        undecided = open_seats
        while undecided:
            undecided = self._decide_all(undecided, board)
        self._claim([seat for seat in open_seats if seat.outcome is None], board)
        for seat in seats:
            self._record(seat)
        return [seat.outcome for seat in seats if seat.outcome is not None]

    # ------------------------------------------------------------ what is asked

    def _ask(self, seats: Sequence[_Seat]) -> None:
        surroundings = self._surroundings([seat.work for seat in seats])
        for seat in seats:
            try:
                seat.request = self._request(seat.work, surroundings)
            except SchedulingError as error:
                seat.outcome = NoHost(str(error), hopeless=True)
        counts: dict[Query, int] = {}
        for seat in seats:
            if seat.request is not None:
                question = tuple(seat.request.query(1)[1:])
                counts[question] = counts.get(question, 0) + 1
        for seat in seats:
            if seat.request is not None:
                question = tuple(seat.request.query(1)[1:])
                limit = self._settings.max_candidates + counts[question]
                seat.query = tuple(seat.request.query(limit))

    def _request(self, work: Work, around: _Surroundings) -> Request:
        asked = work.server["request"]
        properties = (asked.get("image") or {}).get("properties") or {}
        request = from_flavor(
            work.server["uuid"],
            work.server["flavor"],
            properties,
            project_id=work.server["project_id"],
            zone=work.server["requested_zone"],
            host=asked.get("host"),
            server_group=around.groups.get(asked.get("group") or ""),
            tried_nodes=frozenset(work.data.get("tried_nodes", ())),
        )
        request = hints.with_neighbours(request, asked.get("scheduler_hints") or {}, around.node_of)
        target = around.node_named.get(asked.get("node") or asked.get("host") or "")
        return prefilters.narrow(
            request, (EnabledHosts(), ImageTraits(properties), self._zone, OneNode(target))
        )

    def _surroundings(self, batch: Sequence[Work]) -> _Surroundings:
        """What the requests of a batch refer to: server groups, other servers, named nodes."""
        asked = [work.server["request"] for work in batch]
        group_uuids = {request["group"] for request in asked if request.get("group")}
        neighbours = {
            uuid
            for request in asked
            for key in (hints.SAME, hints.DIFFERENT)
            for uuid in hints.servers_named(request.get("scheduler_hints") or {}, key)
        }
        targets = {request.get("node") or request.get("host") for request in asked} - {None, ""}
        found = _Surroundings()
        if not (group_uuids or neighbours or targets):
            return found
        with self._database.read() as connection:
            if group_uuids:
                found.groups = _server_groups(connection, group_uuids)
            if neighbours:
                query = sa.select(servers.c.uuid, servers.c.node_uuid).where(
                    among(connection, servers.c.uuid, neighbours), servers.c.node_uuid.is_not(None)
                )
                found.node_of = dict(connection.execute(query).all())
            if targets:
                query = sa.select(nodes.c.name, nodes.c.uuid).where(among(connection, nodes.c.name, targets))
                found.node_named = dict(connection.execute(query).all())
        return found

    # ------------------------------------------------------------ what is decided

    def _decide_all(self, seats: Sequence[_Seat], board: Board) -> list[_Seat]:
        """Decide for these; answers those whose candidates were all unfit, to be asked for more of them."""
        answers = {query: self._candidates(query) for query in _queries(seats)}
        found = {query: answer for query, answer in answers.items() if isinstance(answer, Candidates)}
        roots = {root for candidates in found.values() for root in offers.roots(candidates)}
        board.learn(self._hosts.states(roots - board.hosts.keys()))
        by_query = {query: offers.offers(candidates, board.hosts) for query, candidates in found.items()}
        cut_off = []
        for seat in seats:
            answer = answers[seat.query]
            if isinstance(answer, PlacementRefusedError):
                seat.outcome = NoHost(f"Placement refuses what it asks for: {answer.detail}", hopeless=True)
            elif not self._decide(seat, by_query[seat.query], board):
                seat.query = _wider(seat.query)
                cut_off.append(seat)
        return cut_off

    def _candidates(self, query: Query) -> Candidates | PlacementRefusedError:
        """A question that makes no sense to Placement is the problem of who asks it, not of the batch."""
        try:
            return self._placement.candidates(query)
        except PlacementRefusedError as error:
            return error

    def _decide(self, seat: _Seat, found: Offers, board: Board) -> bool:
        """False if a wider question may find a host where this one did not."""
        assert seat.request is not None
        seat.decision = self._selector.select(seat.request, found, board, seat.query)
        if seat.decision.cut_off:
            return False
        seat.choices = list(seat.decision.choices)
        if seat.choices:
            board.take(seat.request, seat.choices[0].place.node_uuid, seat.choices[0].allocations)
        else:
            self._none_left(seat)
        return True

    def _none_left(self, seat: _Seat) -> None:
        assert seat.decision is not None
        trace = seat.decision.trace
        trace.chosen = None
        why = self._placement.why([pair for pair in seat.query if pair[0] != "limit"])
        if why is not None:
            trace.why = Emptiness.of(why)
        seat.outcome = NoHost(sentence(trace))

    def _claim(self, seats: list[_Seat], board: Board) -> None:
        """Claim the first choice of each; whoever is refused goes on to its next."""
        for _ in range(self._settings.max_attempts + 1):
            if not seats:
                return
            refusals = self._placement.claim([_claim_of(seat) for seat in seats])
            refused = []
            for seat, refusal in zip(seats, refusals, strict=True):
                if refusal is None:
                    self._seated(seat, board)
                else:
                    self._refused(seat, refusal, board)
                    if seat.outcome is None:
                        refused.append(seat)
            seats = refused
        for seat in seats:
            self._none_left(seat)

    def _seated(self, seat: _Seat, board: Board) -> None:
        assert seat.decision is not None
        choice = seat.choices[0]
        host = board.hosts[choice.place.node_uuid]
        seat.decision.trace.chosen = choice.place
        seat.decision.trace.attempts.append(Attempt(choice.place, "claim", "done"))
        seat.outcome = {
            "host": host.host,
            "node": host.node,
            "node_uuid": host.node_uuid,
            "zone": host.zone,
            "cell": host.cell,
            "mappings": choice.mappings,
        }

    def _refused(self, seat: _Seat, refusal: PlacementRefusedError, board: Board) -> None:
        assert seat.decision is not None
        assert seat.request is not None
        choice = seat.choices[0]
        if "consumer generation conflict" in refusal.detail:
            # A conductor that died had claimed for this server already; nothing runs on that claim.
            self._placement.release([seat.work.operation.server_uuid])
            return
        seat.decision.trace.attempts.append(Attempt(choice.place, "claim", "refused", refusal.detail))
        board.give_back(seat.request, choice.place.node_uuid, choice.allocations)
        seat.choices.pop(0)
        if not seat.choices:
            self._none_left(seat)
            return
        board.take(seat.request, seat.choices[0].place.node_uuid, seat.choices[0].allocations)

    # ------------------------------------------------------------ what is kept

    def _record(self, seat: _Seat) -> None:
        DECISIONS.labels("no_host" if isinstance(seat.outcome, NoHost) else "placed").inc()
        if seat.decision is not None:
            trace = seat.decision.trace
        else:
            problem = seat.outcome.sentence if isinstance(seat.outcome, NoHost) else ""
            trace = Trace(seat.work.operation.server_uuid, [], problem=problem)
        seat.work.writes.append(partial(_write_trace, seat.work, msgspec.to_builtins(trace)))


@dataclass(slots=True)
class _Surroundings:
    groups: Mapping[str, ServerGroup] = field(default_factory=dict)
    node_of: Mapping[str, str] = field(default_factory=dict)
    node_named: Mapping[str, str] = field(default_factory=dict)


def _queries(seats: Sequence[_Seat]) -> list[Query]:
    return list(dict.fromkeys(seat.query for seat in seats))


def _wider(query: Query) -> Query:
    """The same question with a larger limit."""
    return tuple((name, str(int(value) * WIDENING) if name == "limit" else value) for name, value in query)


def _claim_of(seat: _Seat) -> ConsumerClaim:
    server = seat.work.server
    return ConsumerClaim(
        consumer_uuid=server["uuid"],
        allocations=seat.choices[0].allocations,
        project_id=server["project_id"],
        user_id=server["user_id"],
    )


def _server_groups(connection: Connection, uuids: set[str]) -> dict[str, ServerGroup]:
    query = sa.select(server_groups).where(among(connection, server_groups.c.uuid, uuids))
    found = {}
    for row in connection.execute(query):
        members = (
            sa.select(servers.c.node_uuid, sa.func.count())
            .join_from(server_group_members, servers, server_group_members.c.server_id == servers.c.id)
            .where(
                server_group_members.c.group_id == row.id,
                servers.c.node_uuid.is_not(None),
                servers.c.deleted_at.is_(None),
            )
            .group_by(servers.c.node_uuid)
        )
        found[row.uuid] = ServerGroup(
            row.uuid,
            GroupPolicy(row.policy),
            int(row.rules.get("max_server_per_host", 1)),
            dict(connection.execute(members).all()),
        )
    return found


def _write_trace(work: Work, trace: dict[str, Any], connection: Connection) -> None:
    connection.execute(
        sa.insert(traces).values(
            server_id=work.server["id"],
            operation_id=work.operation.id,
            attempt=work.operation.attempt,
            trace=trace,
        )
    )
