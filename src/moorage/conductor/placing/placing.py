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
from moorage.deciding.decider import Decider, MoveSource, NoHost, SchedulingPass, Seat
from moorage.deciding.hosts import Hosts
from moorage.deciding.subject import Subject
from moorage.ledger.leases import Lease
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
    """Somebody else has claimed for this server: a conductor that is dead, or the one that has the lease now.

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
            seats = [_seat(work) for work in batch]
            for work, seat in zip(batch, seats, strict=True):
                if _may_hold(work):
                    _, seat.generation = self._placement.allocations(work.operation.server_uuid)
            return self._place(batch, seats)

    def place_moves(self, batch: Sequence[Work[MoveState]]) -> list[Placed | NoHost | DisputedClaim]:
        """As `place`, for servers that are on a host: their claims there go to their migrations."""
        with SECONDS.time():
            return self._place(batch, self._moving_seats(batch))

    def _moving_seats(self, batch: Sequence[Work[MoveState]]) -> list[Seat]:
        sources = self._hosts.states({work.state.move.source.node_uuid for work in batch})
        seats = []
        for work in batch:
            move = work.state.move
            source = sources.get(move.source.node_uuid)
            leaving = MoveSource(
                move.source.host,
                move.source.node_uuid,
                None if source is None else source.cell,
                move.migration_uuid,
            )
            seat = Seat.of_move(Subject.of(work.server), leaving, move.flavor, move.target, _tried(work))
            seat.failed_hosts = frozenset(work.state.failed_hosts)
            seat.held, seat.generation = self._placement.allocations(work.operation.server_uuid)
            seats.append(seat)
        return seats

    def _place(
        self, batch: Sequence[Work[Placing]], seats: list[Seat]
    ) -> list[Placed | NoHost | DisputedClaim]:
        if not batch:
            return []
        lease = batch[0].lease  # all of a batch have the same
        self._fill(seats, lease)
        in_own_way = [n for n, seat in enumerate(seats) if seat.refusal is not None and _boots_again(seat)]
        for number in in_own_way:
            seats[number] = self._without_claim(batch[number], seats[number])
        self._fill([seats[number] for number in in_own_way if not seats[number].disputed], lease)
        for work, seat in zip(batch, seats, strict=True):
            if work.state.dropped and seat.host is not None and seat.generation is None:
                self._outgrow(seat, work.state.dropped)
        outcomes: list[Placed | NoHost | DisputedClaim] = []
        for work, seat in zip(batch, seats, strict=True):
            if seat.disputed:
                outcomes.append(DisputedClaim())
                continue
            DECISIONS.labels("placed" if seat.refusal is None else "no_host").inc()
            work.write_together(_write_traces, _trace_row(work, seat))
            outcomes.append(seat.refusal or _placed(seat))
        return outcomes

    def _without_claim(self, work: Work[Placing], seat: Seat) -> Seat:
        """The claim that it has from before may be just what leaves no room for it."""
        again = _seat(work)
        again.disputed = not work.holds() or self._placement.claim([_claim_of(seat, {})]) != [None]
        work.state.dropped = max(seat.generation or 0, work.state.dropped)
        return again

    def _outgrow(self, seat: Seat, dropped: int) -> None:
        """Repeat a claim that began anew, until somebody late can't have its generation in hand."""
        for generation in range(1, dropped + 1):
            seat.generation = generation
            seat.disputed = self._placement.claim([_claim_of(seat, seat.choices[0].allocations)]) != [None]
            if seat.disputed:
                return

    def _fill(self, seats: Sequence[Seat], lease: Lease) -> None:
        """Decide and claim until each has its host, or its refusal."""
        left = list(seats)
        for _ in range(_MOST_ROUNDS):
            if not left:
                return
            with DECISION_SECONDS.time():
                this = self._decider.decide(left)
            left = self._claim([seat for seat in left if seat.refusal is None], this, lease)
        for seat in left:
            self._decider.none_left(seat, this)

    def _claim(self, seats: Sequence[Seat], this: SchedulingPass, lease: Lease) -> list[Seat]:
        """Claim the first choice of each; whoever is refused goes on to its next. Those who lost them all.

        Who has the lease here has seen what each server holds before any successor could change it.
        """
        lost: list[Seat] = []
        while seats:
            if not lease.holds():
                for seat in seats:
                    seat.disputed = True
                break
            refused: list[Seat] = []
            for seat, refusal in zip(seats, self._submit(seats), strict=True):
                if refusal is None:
                    _take(seat, this.board)
                elif isinstance(refusal, ConsumerChangedError):
                    seat.disputed = True
                else:
                    _go_on(seat, refusal, this.board)
                    (refused if seat.choices else lost).append(seat)
            seats = refused
        return lost

    def _submit(self, seats: Sequence[Seat]) -> list[PlacementRefusedError | None]:
        """New servers all in one go; a move is about two consumers, and comes true for both or not at all."""
        booting = [seat for seat in seats if seat.leaving is None]
        claims = [_claim_of(seat, seat.choices[0].allocations) for seat in booting]
        outcomes = iter(self._placement.claim(claims) if booting else ())
        return [next(outcomes) if seat.leaving is None else self._move(seat, seat.leaving) for seat in seats]

    def _move(self, seat: Seat, leaving: MoveSource) -> PlacementRefusedError | None:
        wanted = seat.choices[0].allocations
        return self._both_ends.take(seat.server, leaving.migration_uuid, wanted, seat.held, seat.generation)


def _take(seat: Seat, board: Board) -> None:
    """The claim of its first choice was written."""
    place = seat.choices[0].place
    seat.trace.chosen = place
    seat.attempts.append(Attempt(place, "claim", "done"))
    seat.host = board.hosts[place.node_uuid]


def _go_on(seat: Seat, refusal: PlacementRefusedError, board: Board) -> None:
    """The claim of its first choice was refused."""
    assert seat.request is not None
    choice = seat.choices.pop(0)
    seat.attempts.append(Attempt(choice.place, "claim", "refused", refusal.detail))
    board.give_back(seat.request, choice.place.node_uuid, choice.allocations)
    if seat.choices:
        board.take(seat.request, seat.choices[0].place.node_uuid, seat.choices[0].allocations)


def _placed(seat: Seat) -> Placed:
    assert seat.host is not None
    return Placed(
        seat.host.host,
        seat.host.node,
        seat.host.node_uuid,
        seat.host.zone,
        seat.host.cell,
        seat.choices[0].mappings,
        seat.host.binds_ports,
    )


def _seat(work: Work[Placing]) -> Seat:
    """For a server that is on no host yet."""
    return Seat(
        Subject.of(work.server),
        _tried(work),
        full_cells=frozenset(work.state.full_cells),
        failed_hosts=frozenset(work.state.failed_hosts),
    )


def _tried(work: Work[Placing]) -> frozenset[str]:
    return frozenset(work.state.tried_nodes)


def _may_hold(work: Work[Placing]) -> bool:
    """Whether an earlier attempt, or somebody who came to no checkpoint, may have claimed for the server."""
    return work.operation.resumed or work.operation.tries > 0 or work.state.placed is not None


def _boots_again(seat: Seat) -> bool:
    """It was to be elsewhere before, and has a claim from then."""
    return seat.leaving is None and seat.generation is not None and not seat.disputed


def _claim_of(seat: Seat, allocations: dict[str, dict[str, int]]) -> ConsumerClaim:
    return ConsumerClaim(
        consumer_uuid=seat.server.uuid,
        allocations=allocations,
        project_id=seat.server.project_id,
        user_id=seat.server.user_id,
        consumer_generation=seat.generation,
    )


def _trace_row(work: Work[Placing], seat: Seat) -> dict[str, Any]:
    return {
        "server_id": work.server.id,
        "operation_id": work.operation.id,
        "attempt": work.operation.attempt,
        "trace": msgspec.to_builtins(seat.trace),
    }


def _write_traces(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(sa.insert(traces), rows)
