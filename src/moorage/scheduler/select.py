"""Select: from offers, host states and a request to one host, its alternates, and the trace of the choice."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from moorage.scheduler.board import Board
from moorage.scheduler.filters.contract import Filter, Kind, Reason
from moorage.scheduler.groups import Pair
from moorage.scheduler.hosts import HostState
from moorage.scheduler.offers import Offers
from moorage.scheduler.option import Option
from moorage.scheduler.request import Request
from moorage.scheduler.settings import Settings
from moorage.scheduler.trace import Exclusion, PassedOver, Place, Ranked, Trace
from moorage.scheduler.weighers.contract import Weigher, shares

EXAMPLES = 3
"""So many hosts that a filter excluded are named in the trace."""
RANKED = 10
"""So many of the hosts left are in the trace, with their weights."""

_NO_HOST = Reason(Kind.NO_HOST)


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
        limit = dict(self.trace.query).get("limit")
        return not self.choices and limit is not None and self.trace.candidates >= int(limit)

    @property
    def chosen(self) -> Choice | None:
        return self.choices[0] if self.choices else None


class Selector:
    """Decides with one operator's settings; keeps nothing between two decisions."""

    def __init__(self, settings: Settings) -> None:
        self._filters: tuple[Filter, ...] = settings.filters()
        self._weighers: tuple[Weigher, ...] = settings.weighers()
        self._count = settings.max_attempts

    def select(self, request: Request, offers: Offers, board: Board, query: Sequence[Pair] = ()) -> Decision:
        """Choose for one server; the caller tells the board which choice it takes."""
        trace = Trace(
            request.server_uuid, list(query), candidates=offers.candidates, nodes=len(offers.by_node)
        )
        options = list(self._passing(request, offers, board, trace))
        trace.left = len(options)
        if not options:
            return Decision([], trace)
        ranking = self._rank(request, options)
        trace.ranking = [
            Ranked(_place(option.host), weight, dict(given)) for weight, option, given in ranking[:RANKED]
        ]
        choices = [_choice(option) for _, option, _ in ranking[: self._count]]
        trace.chosen = choices[0].place
        trace.alternates = [choice.place for choice in choices[1:]]
        return Decision(choices, trace)

    def _passing(self, request: Request, offers: Offers, board: Board, trace: Trace) -> Iterator[Option]:
        filters = [check for check in self._filters if check.applies(request)]
        excluded: dict[str, Exclusion] = {}
        for node_uuid, offer in offers.by_node.items():
            host = board.hosts.get(node_uuid)
            if host is None:
                nobody = Place("", node_uuid, node_uuid)
                _note(excluded, "owner", nobody, _NO_HOST)
                continue
            objector = _objector(filters, host, request)
            if objector is not None:
                _note(excluded, objector[0], _place(host), objector[1])
                continue
            way = board.first_fit(host, offer)
            if way is None:
                _note(excluded, "room", _place(host), Reason(Kind.ROOM_TAKEN, _classes(request)))
                continue
            yield Option(host, offer, way)
        trace.excluded = list(excluded.values())

    def _rank(
        self, request: Request, options: list[Option]
    ) -> list[tuple[float, Option, list[tuple[str, float]]]]:
        """Best first. Equals are put in an order of the server's own, so that servers which are decided at
        the same time, here or by another conductor, don't all go for the same one."""
        weighers = [weigher for weigher in self._weighers if weigher.applies(request)]
        names = [weigher.name for weigher in weighers]
        columns = [shares(weigher, options, request) for weigher in weighers]
        weights = [sum(row) for row in zip(*columns, strict=True)] if columns else [0.0] * len(options)
        seed = zlib.crc32(request.server_uuid.encode())
        turn = [zlib.crc32(option.host.node_uuid.encode(), seed) for option in options]
        order = sorted(range(len(options)), key=lambda number: (-weights[number], turn[number]))
        return [
            (
                weights[number],
                options[number],
                [(name, column[number]) for name, column in zip(names, columns, strict=True)],
            )
            for number in order[: max(RANKED, self._count)]
        ]


def _objector(filters: Sequence[Filter], host: HostState, request: Request) -> tuple[str, Reason] | None:
    for check in filters:
        reason = check.objection(host, request)
        if reason is not None:
            return check.name, reason
    return None


def _place(host: HostState) -> Place:
    return Place(host.host, host.node, host.node_uuid)


def _choice(option: Option) -> Choice:
    held = {uuid: entry["resources"] for uuid, entry in option.way.allocations.items()}
    return Choice(_place(option.host), held, option.way.mappings)


def _classes(request: Request) -> str:
    return ", ".join(sorted({name for group in request.groups for name in group.resources}))


def _note(excluded: dict[str, Exclusion], name: str, place: Place, reason: Reason) -> None:
    found = excluded.get(name)
    if found is None:
        found = excluded[name] = Exclusion(name, examples=[], kinds={})
    found.count += 1
    found.kinds[reason.kind] = found.kinds.get(reason.kind, 0) + 1
    if len(found.examples) < EXAMPLES:
        found.examples.append(PassedOver(place, reason))
