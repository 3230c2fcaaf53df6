"""Rankings: how the nodes of one answer rank for requests of one kind, kept current while a pass goes on.

The servers of a pass mostly ask for the same. Between two of them only the node that the first one took has
changed, so only that one is filtered and weighed anew; the rest is a few operations on whole columns.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from moorage.scheduler.board import Board
from moorage.scheduler.criteria import Criteria
from moorage.scheduler.filters.contract import Filter, Reason, ReasonKind
from moorage.scheduler.hosts import HostState
from moorage.scheduler.offers import Offers
from moorage.scheduler.option import HostOption
from moorage.scheduler.trace import Exclusion, PassedOver, Place
from moorage.scheduler.weighers.contract import Weigher, shares

EXAMPLES = 3
"""So many hosts that a filter excluded are named in a trace."""

_NO_HOST = Reason(ReasonKind.NO_HOST)
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""Spreads small differences over all bits."""


class Objection(NamedTuple):
    filter: str
    place: Place
    reason: Reason


class Rank(NamedTuple):
    option: HostOption
    weight: float
    shares: dict[str, float]


def kind_of(request: Criteria) -> Hashable | None:
    """Requests of one kind rank hosts alike in the same answer; None for one that is like no other.

    A server group makes one: each member that is placed changes what all hosts are to the next.
    """
    return None if request.server_group is not None else request.values()


class Ranking:
    def __init__(
        self,
        request: Criteria,
        offers: Offers,
        board: Board,
        filters: Sequence[Filter],
        weighers: Sequence[Weigher],
    ) -> None:
        self._request = request = request.criteria()
        self._answer = offers  # stays alive, since the board knows rankings by the identity of their answer
        self._offers = list(offers.by_node.values())
        self._board = board
        self._filters = [check for check in filters if check.applies(request)]
        self._weighers = [weigher for weigher in weighers if weigher.applies(request)]
        count = len(self._offers)
        self._index = {offer.node_uuid: number for number, offer in enumerate(self._offers)}
        self._options: list[HostOption | None] = [None] * count
        self._objections: list[Objection | None] = [None] * count
        self._excluded: list[Exclusion] | None = None
        self._raw = np.zeros((len(self._weighers), count))
        self._passing = np.zeros(count, np.bool_)
        hashes = [zlib.crc32(offer.node_uuid.encode()) for offer in self._offers]
        self._hashes = np.array(hashes, np.uint64)
        self._sharing = [number for number, offer in enumerate(self._offers) if offer.shares]
        self._seen = len(board.changed)
        for number in range(count):
            self._judge(number)

    @property
    def left(self) -> int:
        return int(np.count_nonzero(self._passing))

    def catch_up(self) -> None:
        """Judge again what the pass has changed since the last time."""
        changed = self._board.changed[self._seen :]
        if not changed:
            return
        self._seen += len(changed)
        numbers = {self._index[uuid] for uuid in changed if uuid in self._index}
        for number in numbers.union(self._sharing):
            self._judge(number)

    def passing(self) -> list[str]:
        """The nodes that are left, in no order."""
        return [self._offers[number].node_uuid for number in np.flatnonzero(self._passing)]

    def best(self, server_uuid: str, count: int) -> list[Rank]:
        """Best first. Equals are put in an order of the server's own, so that servers which are decided at
        the same time, here or by another conductor, don't all go for the same one."""
        alive = np.flatnonzero(self._passing)
        columns = [
            shares(weigher, raw[alive]) for weigher, raw in zip(self._weighers, self._raw, strict=True)
        ]
        weights = np.sum(columns, axis=0) if columns else np.zeros(len(alive))
        turns = (self._hashes[alive] ^ np.uint64(zlib.crc32(server_uuid.encode()))) * _MIX
        order = np.lexsort((turns, -weights))[:count]
        return [self._rank(int(alive[number]), int(number), weights, columns) for number in order]

    def _rank(
        self,
        option_number: int,
        number: int,
        weights: npt.NDArray[np.float64],
        columns: list[npt.NDArray[np.float64]],
    ) -> Rank:
        option = self._options[option_number]
        assert option is not None
        given = {
            weigher.name: float(column[number])
            for weigher, column in zip(self._weighers, columns, strict=True)
        }
        return Rank(option, float(weights[number]), given)

    def excluded(self) -> list[Exclusion]:
        """By filter: how many it excluded, and a few of them."""
        if self._excluded is None:
            self._excluded = list(_exclusions(filter(None, self._objections)))
        return self._excluded

    def _judge(self, number: int) -> None:
        found = self._option(number)
        if isinstance(found, HostOption):
            self._options[number], objection = found, None
            for row, weigher in enumerate(self._weighers):
                self._raw[row, number] = weigher.weigh(found, self._request)
        else:
            self._options[number], objection = None, found
        self._passing[number] = objection is None
        if objection != self._objections[number]:
            self._objections[number] = objection
            self._excluded = None

    def _option(self, number: int) -> HostOption | Objection:
        offer = self._offers[number]
        host = self._board.hosts.get(offer.node_uuid)
        if host is None:
            return Objection("owner", Place("", offer.node_uuid, offer.node_uuid), _NO_HOST)
        for check in self._filters:
            reason = check.objection(host, self._request)
            if reason is not None:
                return Objection(check.name, place_of(host), reason)
        way = self._board.first_fit(host, offer)
        if way is None:
            return Objection("room", place_of(host), Reason(ReasonKind.ROOM_TAKEN, _classes(self._request)))
        return HostOption(host, offer, way)


def place_of(host: HostState) -> Place:
    return Place(host.host, host.node, host.node_uuid)


def _classes(request: Criteria) -> str:
    return ", ".join(sorted({name for group in request.groups for name in group.resources}))


def _exclusions(objections: Iterator[Objection]) -> Iterator[Exclusion]:
    by_filter: dict[str, Exclusion] = {}
    for name, place, reason in objections:
        found = by_filter.setdefault(name, Exclusion(name, examples=[], kinds={}))
        found.count += 1
        found.kinds[reason.kind] = found.kinds.get(reason.kind, 0) + 1
        if len(found.examples) < EXAMPLES:
            found.examples.append(PassedOver(place, reason))
    yield from by_filter.values()
