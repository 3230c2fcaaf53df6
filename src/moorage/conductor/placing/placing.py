"""Placing: hosts for a batch of servers, with their claims made.

What was decided for a batch is claimed together; a claim that is refused goes to the server's next choice.
Who has lost all choices to others is decided anew, since there may be room elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter, Histogram
from sqlalchemy.engine import Connection

from moorage.conductor.engine.work import Work
from moorage.conductor.placing.both_ends import BothEnds
from moorage.conductor.placing.placed import MoveState, Placed, Placing
from moorage.db.tables.compute import traces
from moorage.deciding.decider import Decider, HostSearch, MoveSource, NoHost, SchedulingPass
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.ledger.held_leases import Lease
from moorage.placement.client.contract import (
    ConsumerChangedError,
    ConsumerClaim,
    PlacementClient,
    PlacementRefusedError,
)
from moorage.scheduler.board import Board
from moorage.scheduler.trace import Attempt

DECISIONS = Counter("moorage_scheduler_decisions_total", "Decisions made.", ["outcome"])
_BUCKETS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
SECONDS = Histogram(
    "moorage_scheduler_pass_seconds", "Time to place a batch of servers, claims included.", buckets=_BUCKETS
)
DECISION_SECONDS = Histogram(
    "moorage_scheduler_decision_seconds", "Time to decide where a batch of servers goes.", buckets=_BUCKETS
)

_MOST_ROUNDS = 5
"""In each round somebody gets what all of them wanted, so few are left for the last."""


@dataclass(frozen=True, slots=True)
class DisputedClaim:
    """Another conductor has claimed for this server: one that is dead, or the one that holds the lease now.

    Only who gets a new lease can tell, so nothing is decided.
    """


class Placer:
    def __init__(self, decider: Decider, hosts: Hosts, placement: PlacementClient) -> None:
        self._decider = decider
        self._hosts = hosts
        self._placement = placement
        self._both_ends = BothEnds(placement)

    def has_live_peer(self, host: str) -> bool:
        """Whether some other host is about to take over from this one, which is down."""
        return self._hosts.has_live_peer(host)

    def hosts_up(self) -> set[str]:
        return self._hosts.up()

    def release(self, batch: Sequence[Work[Any]]) -> None:
        """Drop the claims of servers that will not run where they were to."""
        self._placement.release([work.operation.server_uuid for work in batch])

    def place(self, batch: Sequence[Work[Placing]]) -> list[Placed | NoHost | DisputedClaim]:
        """For each server where it goes, claimed; or why it goes nowhere.

        A claim that it has from before is replaced by the new one, never dropped first: see decision 19.
        """
        with SECONDS.time():
            searches = [_search(work) for work in batch]
            for work, search in zip(batch, searches, strict=True):
                if _may_hold(work):
                    _, search.generation = self._placement.allocations(work.operation.server_uuid)
            return self._place(batch, searches)

    def place_moves(self, batch: Sequence[Work[MoveState]]) -> list[Placed | NoHost | DisputedClaim]:
        """As `place`, for servers that are on a host: their claims there go to their migrations."""
        with SECONDS.time():
            return self._place(batch, self._moving_searches(batch))

    def _moving_searches(self, batch: Sequence[Work[MoveState]]) -> list[HostSearch]:
        sources = self._hosts.states({work.state.move.source.node_uuid for work in batch})
        searches = []
        for work in batch:
            move = work.state.move
            source = sources.get(move.source.node_uuid)
            leaving = MoveSource(
                move.source.host,
                move.source.node_uuid,
                None if source is None else source.cell,
                move.migration_uuid,
                move.may_stay,
            )
            search = HostSearch.of_move(
                Subject.of(work.server), leaving, move.flavor, move.target, _tried(work)
            )
            search.failed_hosts = frozenset(work.state.failed_hosts)
            search.held, search.generation = self._placement.allocations(work.operation.server_uuid)
            searches.append(search)
        return searches

    def _place(
        self, batch: Sequence[Work[Placing]], searches: list[HostSearch]
    ) -> list[Placed | NoHost | DisputedClaim]:
        if not batch:
            return []
        lease = batch[0].lease  # all of a batch have the same
        self._fill(searches, lease)
        in_own_way = [
            n for n, search in enumerate(searches) if search.refusal is not None and _boots_again(search)
        ]
        for number in in_own_way:
            searches[number] = self._without_claim(batch[number], searches[number])
        self._fill([searches[number] for number in in_own_way if not searches[number].disputed], lease)
        for work, search in zip(batch, searches, strict=True):
            if work.state.dropped and search.host is not None and search.generation is None:
                self._outgrow(search, work.state.dropped)
        outcomes: list[Placed | NoHost | DisputedClaim] = []
        for work, search in zip(batch, searches, strict=True):
            if search.disputed:
                outcomes.append(DisputedClaim())
                continue
            DECISIONS.labels("placed" if search.refusal is None else "no_host").inc()
            work.write_together(_write_traces, _trace_row(work, search))
            outcomes.append(search.refusal or _placed(search))
        return outcomes

    def _without_claim(self, work: Work[Placing], search: HostSearch) -> HostSearch:
        """The claim that it has from before may be just what leaves no room for it."""
        again = _search(work)
        again.disputed = not work.holds() or self._placement.claim([_claim_of(search, {})]) != [None]
        work.state.dropped = max(search.generation or 0, work.state.dropped)
        return again

    def _outgrow(self, search: HostSearch, dropped: int) -> None:
        """Repeat a claim that began anew, until no conductor whose lease has ended has its generation."""
        for generation in range(1, dropped + 1):
            search.generation = generation
            search.disputed = self._placement.claim([_claim_of(search, search.choices[0].allocations)]) != [
                None
            ]
            if search.disputed:
                return

    def _fill(self, searches: Sequence[HostSearch], lease: Lease) -> None:
        """Decide and claim until each has its host, or its refusal."""
        left = list(searches)
        for _ in range(_MOST_ROUNDS):
            if not left:
                return
            with DECISION_SECONDS.time():
                this = self._decider.decide(left)
            left = self._claim([search for search in left if search.refusal is None], this, lease)
        for search in left:
            self._decider.none_left(search, this)

    def _claim(self, searches: Sequence[HostSearch], this: SchedulingPass, lease: Lease) -> list[HostSearch]:
        """Claim the first choice of each; whoever is refused goes on to its next. Those who lost them all.

        Who has the lease here has seen what each server holds before any successor could change it.
        """
        lost: list[HostSearch] = []
        while searches:
            if not lease.holds():
                for search in searches:
                    search.disputed = True
                break
            refused: list[HostSearch] = []
            for search, refusal in zip(searches, self._submit(searches), strict=True):
                if refusal is None:
                    _take(search, this.board)
                elif isinstance(refusal, ConsumerChangedError):
                    search.disputed = True
                else:
                    _go_on(search, refusal, this.board)
                    (refused if search.choices else lost).append(search)
            searches = refused
        return lost

    def _submit(self, searches: Sequence[HostSearch]) -> list[PlacementRefusedError | None]:
        """New servers all in one go; a move is about two consumers, and comes true for both or not at all."""
        booting = [search for search in searches if search.leaving is None]
        claims = [_claim_of(search, search.choices[0].allocations) for search in booting]
        outcomes = iter(self._placement.claim(claims) if booting else ())
        return [
            next(outcomes) if search.leaving is None else self._move(search, search.leaving)
            for search in searches
        ]

    def _move(self, search: HostSearch, leaving: MoveSource) -> PlacementRefusedError | None:
        wanted = search.choices[0].allocations
        return self._both_ends.take(
            search.server, leaving.migration_uuid, wanted, search.held, search.generation
        )


def _take(search: HostSearch, board: Board) -> None:
    """The claim of its first choice was written."""
    place = search.choices[0].place
    search.trace.chosen = place
    search.attempts.append(Attempt(place, "claim", "done"))
    search.host = board.hosts[place.node_uuid]


def _go_on(search: HostSearch, refusal: PlacementRefusedError, board: Board) -> None:
    """The claim of its first choice was refused."""
    assert search.request is not None
    choice = search.choices.pop(0)
    search.attempts.append(Attempt(choice.place, "claim", "refused", refusal.detail))
    board.give_back(search.request, choice.place.node_uuid, choice.allocations)
    if search.choices:
        board.take(search.request, search.choices[0].place.node_uuid, search.choices[0].allocations)


def _placed(search: HostSearch) -> Placed:
    assert search.host is not None
    held = search.choices[0].allocations
    return Placed(
        search.host.host,
        search.host.node,
        search.host.node_uuid,
        search.host.zone,
        search.host.cell,
        search.choices[0].mappings,
        search.host.binds_ports,
        search.host.starts_paused,
        held if held.keys() != {search.host.node_uuid} else {},
    )


def _search(work: Work[Placing]) -> HostSearch:
    """For a server that is on no host yet."""
    return HostSearch(
        Subject.of(work.server),
        _tried(work),
        full_cells=frozenset(work.state.full_cells),
        failed_hosts=frozenset(work.state.failed_hosts),
    )


def _tried(work: Work[Placing]) -> frozenset[str]:
    return frozenset(work.state.tried_nodes)


def _may_hold(work: Work[Placing]) -> bool:
    """Whether an earlier attempt, or a conductor without a checkpoint, may have claimed for the server."""
    return work.operation.resumed or work.operation.tries > 0 or work.state.placed is not None


def _boots_again(search: HostSearch) -> bool:
    """It was to be elsewhere before, and has a claim from then."""
    return search.leaving is None and search.generation is not None and not search.disputed


def _claim_of(search: HostSearch, allocations: dict[str, dict[str, int]]) -> ConsumerClaim:
    return ConsumerClaim(
        consumer_uuid=search.server.uuid,
        allocations=allocations,
        project_id=search.server.project_id,
        user_id=search.server.user_id,
        consumer_generation=search.generation,
    )


def _trace_row(work: Work[Placing], search: HostSearch) -> dict[str, Any]:
    return {
        "server_id": work.server.id,
        "operation_id": work.operation.id,
        "attempt": work.operation.attempt,
        "trace": msgspec.to_builtins(search.trace),
    }


def _write_traces(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(sa.insert(traces), rows)
