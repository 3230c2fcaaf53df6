"""Placing: hosts for a batch of servers, with their claims made.

What was decided for a batch is claimed together; a claim that is refused goes to the server's next choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import sqlalchemy as sa
from prometheus_client import Counter, Histogram
from sqlalchemy.engine import Connection

from moorage.conductor.both_ends import BothEnds
from moorage.conductor.deciding import Decider, Leaving, NoHost, Pass, Seat
from moorage.conductor.hosts import Hosts
from moorage.conductor.move import Move
from moorage.conductor.work import Work
from moorage.db.tables.compute import traces
from moorage.placement.client.contract import ConsumerClaim, PlacementClient, PlacementRefusedError
from moorage.scheduler.board import Board
from moorage.scheduler.trace import Attempt

DECISIONS = Counter("moorage_scheduler_decisions_total", "Decisions made.", ["outcome"])
SECONDS = Histogram(
    "moorage_scheduler_pass_seconds",
    "Time to place a batch of servers.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)

Placed = dict[str, Any]
"""Where a server goes: host, node, node_uuid, zone, cell, and which providers serve it."""


@dataclass(frozen=True, slots=True)
class Disputed:
    """Somebody else has claimed for this server: a conductor that is dead, or the one that has the lease now.

    Only who gets a new lease can tell, so nothing is decided.
    """


class Placer:
    def __init__(
        self, decider: Decider, hosts: Hosts, placement: PlacementClient, *, max_attempts: int
    ) -> None:
        self._decider = decider
        self._hosts = hosts
        self._placement = placement
        self._both_ends = BothEnds(placement)
        self._max_attempts = max_attempts

    def has_heir(self, host: str) -> bool:
        """Whether some other host is about to take over from this one, which is down."""
        return self._hosts.has_heir(host)

    def hosts_up(self) -> set[str]:
        return self._hosts.up()

    def release(self, batch: Sequence[Work]) -> None:
        """Drop the claims of servers that will not run where they were to."""
        self._placement.release([work.operation.server_uuid for work in batch])

    def place(self, batch: Sequence[Work]) -> list[Placed | NoHost | Disputed]:
        """For each server where it goes, claimed; or why it goes nowhere."""
        with SECONDS.time():
            seats = [Seat(work.server, _tried(work), full_cells=_full_cells(work)) for work in batch]
            return self._place(batch, seats)

    def place_moves(self, batch: Sequence[Work]) -> list[Placed | NoHost | Disputed]:
        """As `place`, for servers that are on a host: their claims there go to their migrations."""
        with SECONDS.time():
            return self._place(batch, self._moving_seats(batch))

    def _moving_seats(self, batch: Sequence[Work]) -> list[Seat]:
        sources = self._hosts.states({Move.of(work).source.node_uuid for work in batch})
        seats = []
        for work in batch:
            move = Move.of(work)
            source = sources.get(move.source.node_uuid)
            leaving = Leaving(
                move.source.host,
                move.source.node_uuid,
                None if source is None else source.cell,
                move.migration_uuid,
            )
            seats.append(Seat.of_move(work.server, leaving, move.flavor, move.target, _tried(work)))
        return seats

    def _place(self, batch: Sequence[Work], seats: Sequence[Seat]) -> list[Placed | NoHost | Disputed]:
        this = self._decider.decide(seats)
        disputed = self._claim([seat for seat in seats if seat.refusal is None], this)
        outcomes: list[Placed | NoHost | Disputed] = []
        for work, seat in zip(batch, seats, strict=True):
            if work.operation.server_uuid in disputed:
                outcomes.append(Disputed())
                continue
            DECISIONS.labels("placed" if seat.refusal is None else "no_host").inc()
            work.write_together(_write_traces, _trace_row(work, seat))
            outcomes.append(_placed(seat, this.board) if seat.refusal is None else seat.refusal)
        return outcomes

    def _claim(self, seats: list[Seat], this: Pass) -> set[str]:
        """Claim the first choice of each; whoever is refused goes on to its next. Servers in dispute."""
        disputed: set[str] = set()
        for _ in range(self._max_attempts + 1):
            if not seats:
                break
            refusals = self._submit(seats)
            refused = []
            for seat, refusal in zip(seats, refusals, strict=True):
                if refusal is None:
                    place = seat.choices[0].place
                    seat.trace.chosen = place
                    seat.trace.attempts.append(Attempt(place, "claim", "done"))
                    continue
                if "consumer generation conflict" in refusal.detail:
                    disputed.add(seat.server["uuid"])
                    continue
                self._refused(seat, refusal, this)
                if seat.refusal is None:
                    refused.append(seat)
            seats = refused
        for seat in seats:
            self._decider.none_left(seat, this)
        return disputed

    def _submit(self, seats: Sequence[Seat]) -> list[PlacementRefusedError | None]:
        """New servers all in one go; a move is about two consumers, and comes true for both or not at all."""
        booting = [seat for seat in seats if seat.leaving is None]
        outcomes = iter(self._placement.claim([_claim_of(seat) for seat in booting]) if booting else ())
        return [
            next(outcomes)
            if seat.leaving is None
            else self._both_ends.take(seat.server, seat.leaving.migration_uuid, seat.choices[0].allocations)
            for seat in seats
        ]

    def _refused(self, seat: Seat, refusal: PlacementRefusedError, this: Pass) -> None:
        assert seat.request is not None
        choice = seat.choices[0]
        seat.trace.attempts.append(Attempt(choice.place, "claim", "refused", refusal.detail))
        this.board.give_back(seat.request, choice.place.node_uuid, choice.allocations)
        seat.choices.pop(0)
        if not seat.choices:
            self._decider.none_left(seat, this)
            return
        this.board.take(seat.request, seat.choices[0].place.node_uuid, seat.choices[0].allocations)


def _placed(seat: Seat, board: Board) -> Placed:
    choice = seat.choices[0]
    host = board.hosts[choice.place.node_uuid]
    return {
        "host": host.host,
        "node": host.node,
        "node_uuid": host.node_uuid,
        "zone": host.zone,
        "cell": host.cell,
        "mappings": choice.mappings,
    }


def _tried(work: Work) -> frozenset[str]:
    return frozenset(work.data.get("tried_nodes", ()))


def _full_cells(work: Work) -> frozenset[str]:
    return frozenset(work.data.get("full_cells", ()))


def _claim_of(seat: Seat) -> ConsumerClaim:
    server = seat.server
    return ConsumerClaim(
        consumer_uuid=server["uuid"],
        allocations=seat.choices[0].allocations,
        project_id=server["project_id"],
        user_id=server["user_id"],
    )


def _trace_row(work: Work, seat: Seat) -> dict[str, Any]:
    return {
        "server_id": work.server["id"],
        "operation_id": work.operation.id,
        "attempt": work.operation.attempt,
        "trace": msgspec.to_builtins(seat.trace),
    }


def _write_traces(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    connection.execute(sa.insert(traces), rows)
