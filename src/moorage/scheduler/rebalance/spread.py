"""Spread: the moves that make the used shares of hosts the most alike, the best one first."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from moorage.scheduler.rebalance.picture import (
    Bars,
    ChosenMove,
    CloudPicture,
    Loads,
    Mask,
    MovableServer,
    Numbers,
    amounts,
    by_host,
)

_FULLEST = 16
"""So many hosts are looked at for the next move, since the best one leaves a full host; all, if none does."""
_LEAST = 1e-9
"""A gain below this is but the noise of sums."""


class _Found(NamedTuple):
    gain: float
    source: int
    target: int
    server: MovableServer


class _Sort(NamedTuple):
    """Servers of one host that are alike: it does not matter which of them is moved."""

    example: MovableServer
    needs: Numbers
    key: tuple[float, ...]


class _Now(NamedTuple):
    """The shares of hosts before the next move, and what is known of them."""

    shares: Numbers
    total: float
    squares: float
    deviation: float

    @classmethod
    def of(cls, shares: Numbers) -> _Now:
        return cls(shares, float(shares.sum()), float(np.square(shares).sum()), float(shares.std()))


class _Arrival(NamedTuple):
    """What something that comes would do to each host; servers of the same size share it."""

    shares: Numbers
    more: Numbers
    """By how much the sum of shares would grow."""
    more_squares: Numbers
    fits: Mask


def spread(picture: CloudPicture, bars: Bars, most: int, min_gain: float = 0.0) -> list[ChosenMove]:
    """At most so many moves, each of which lowers the standard deviation by `min_gain` at least.

    None of them makes a host fuller than the one that it leaves was, so the fullest host never gets fuller.
    """
    search = _Search(picture, bars)
    chosen: list[ChosenMove] = []
    while len(chosen) < most:
        found = search.best(max(min_gain, _LEAST))
        if found is None:
            break
        search.make(found)
        chosen.append(ChosenMove(found.server, found.source, found.target, found.gain))
    return chosen


class _Search:
    def __init__(self, picture: CloudPicture, bars: Bars) -> None:
        self._bars = bars
        self._loads = Loads(picture.hosts)
        self._left = by_host(picture)
        self._sorts: dict[int, list[_Sort]] = {}
        self._arrivals: dict[tuple[float, ...], _Arrival] = {}

    def best(self, least: float) -> _Found | None:
        if not any(self._left):
            return None
        now = _Now.of(self._loads.shares())
        self._arrivals.clear()
        sources = [int(number) for number in np.argsort(-now.shares, kind="stable") if self._left[number]]
        found = self._best_from(sources[:_FULLEST], now, least)
        return found or self._best_from(sources[_FULLEST:], now, least)

    def make(self, move: _Found) -> None:
        """A server that is moved once is not moved again."""
        self._loads.move(amounts(move.server.needs), move.source, move.target)
        self._left[move.source].remove(move.server)
        del self._sorts[move.source]

    def _best_from(self, sources: Sequence[int], now: _Now, least: float) -> _Found | None:
        best: _Found | None = None
        for source in sources:
            for sort in self._sorts_on(source):
                found = self._target(sort, source, now)
                if found is not None and found.gain >= (least if best is None else best.gain + _LEAST):
                    best = found
        return best

    def _target(self, sort: _Sort, source: int, now: _Now) -> _Found | None:
        """Where it would win the most."""
        there, full = self._arrival(sort, now), now.shares[source]
        able = there.fits & self._bars.open_to(sort.example.kind) & (there.shares < full)
        able[source] = False
        here, count = self._loads.share_without(source, sort.needs), len(able)
        means = (there.more + (now.total + here - full)) / count
        variances = (there.more_squares + (now.squares + here**2 - full**2)) / count - means * means
        variances[~able] = np.inf
        target = int(np.argmin(variances))
        if not able[target]:
            return None
        deviation = max(float(variances[target]), 0.0) ** 0.5
        return _Found(now.deviation - deviation, source, target, sort.example)

    def _arrival(self, sort: _Sort, now: _Now) -> _Arrival:
        if sort.key not in self._arrivals:
            shares = self._loads.shares_with(sort.needs)
            squares = np.square(shares) - np.square(now.shares)
            fits = self._loads.fits(sort.needs)
            self._arrivals[sort.key] = _Arrival(shares, shares - now.shares, squares, fits)
        return self._arrivals[sort.key]

    def _sorts_on(self, source: int) -> list[_Sort]:
        """The smallest come first: if they win the same, they take the least time."""
        if source not in self._sorts:
            found: dict[Hashable, _Sort] = {}
            for server in self._left[source]:
                needs = amounts(server.needs)
                key = tuple(needs)
                found.setdefault((server.kind, key), _Sort(server, needs, key))
            self._sorts[source] = sorted(
                found.values(), key=lambda sort: sort.example.needs.get("MEMORY_MB", 0)
            )
        return self._sorts[source]
