"""Select: from offers, host states and a request to one host, its alternates, and the trace of the choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from moorage.scheduler.board import Board
from moorage.scheduler.groups import Pair
from moorage.scheduler.offers import Offers
from moorage.scheduler.option import HostOption
from moorage.scheduler.ranking import Ranking, kind_of, place_of
from moorage.scheduler.request import Request
from moorage.scheduler.settings import SchedulerSettings
from moorage.scheduler.trace import Place, Ranked, Trace

RANKED = 10
"""So many of the hosts left are in the trace, with their weights."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A host for a server, and the allocations to claim there."""

    place: Place
    allocations: dict[str, dict[str, int]]
    """Amounts by resource class, by the provider's UUID."""
    mappings: dict[str, list[str]]
    """By suffix of the request group: the providers that serve it."""


@dataclass(frozen=True, slots=True)
class Decision:
    choices: list[Choice]
    """Best first: the host to take, then its alternates. Empty if no host fits."""
    trace: Trace

    @property
    def cut_off(self) -> bool:
        """No host passed, but Placement had more to offer than it was asked for: worth a larger limit."""
        return not self.choices and self._had_more

    def settles_for(self, hosts: frozenset[str]) -> bool:
        """The best is on one of these hosts, though Placement had more to offer than it was asked for."""
        return bool(self.choices) and self.choices[0].place.host in hosts and self._had_more

    @property
    def _had_more(self) -> bool:
        limit = dict(self.trace.query).get("limit")
        return limit is not None and self.trace.candidates >= int(limit)

    @property
    def chosen(self) -> Choice | None:
        return self.choices[0] if self.choices else None


class Selector:
    """Decides with one operator's settings; what it keeps of a pass, it keeps on the pass's board."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self._filters = settings.filters()
        self._weighers = settings.weighers()
        self._count = settings.max_attempts

    def select(self, request: Request, offers: Offers, board: Board, query: Sequence[Pair] = ()) -> Decision:
        """Choose for one server; the caller tells the board which choice it takes."""
        ranking = self._ranking(request, offers, board)
        trace = Trace(
            request.server_uuid,
            list(query),
            list(request.narrowings),
            candidates=offers.candidates,
            nodes=len(offers.by_node),
            excluded=ranking.excluded(),
            left=ranking.left,
        )
        if not trace.left:
            return Decision([], trace)
        ranks = ranking.best(request.server_uuid, max(RANKED, self._count))
        trace.ranking = [
            Ranked(place_of(rank.option.host), rank.weight, rank.shares) for rank in ranks[:RANKED]
        ]
        choices = [_choice(rank.option) for rank in ranks[: self._count]]
        trace.chosen = choices[0].place
        trace.alternates = [choice.place for choice in choices[1:]]
        return Decision(choices, trace)

    def fitting(self, request: Request, offers: Offers, board: Board) -> frozenset[str]:
        """All the nodes that would do."""
        return frozenset(self._ranking(request, offers, board).passing())

    def _ranking(self, request: Request, offers: Offers, board: Board) -> Ranking:
        kind = kind_of(request)
        if kind is None:
            return Ranking(request, offers, board, self._filters, self._weighers)
        kept = board.rankings.get((id(offers), kind))
        if kept is None:
            kept = Ranking(request, offers, board, self._filters, self._weighers)
            board.rankings[id(offers), kind] = kept
        kept.catch_up()
        return kept


def _choice(option: HostOption) -> Choice:
    held = {uuid: entry["resources"] for uuid, entry in option.way.allocations.items()}
    return Choice(place_of(option.host), held, option.way.mappings)
