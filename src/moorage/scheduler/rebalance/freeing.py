"""Freeing: the hosts that can be emptied with the fewest moves, into the room that others have left."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.scheduler.rebalance.picture import (
    MEASURED,
    Bars,
    ChosenMove,
    CloudPicture,
    LoadedHost,
    Loads,
    Mask,
    MovableServer,
    amounts,
    by_host,
)


def freeing(picture: CloudPicture, bars: Bars, most: int) -> list[ChosenMove]:
    """At most so many moves; a host is emptied wholly, or left as it is."""
    packing = _Packing(picture, bars)
    for source in packing.candidates():
        if len(packing.chosen) >= most:
            break
        packing.empty(source, most - len(packing.chosen))
    return packing.chosen


class _Packing:
    """Into hosts that are in use anyway, never into one that is empty or is to be emptied."""

    def __init__(self, picture: CloudPicture, bars: Bars) -> None:
        self.chosen: list[ChosenMove] = []
        self._bars = bars
        self._hosts = picture.hosts
        self._servers = by_host(picture)
        self._loads = Loads(picture.hosts)
        self._shares = self._loads.shares()
        self._takes: Mask = np.array([not is_empty(host) for host in picture.hosts], np.bool_)
        self._came: set[int] = set()

    def candidates(self) -> list[int]:
        """Those with the fewest servers first, for they cost the fewest moves; then those used the least."""
        able = [
            number for number, host in enumerate(self._hosts) if _can_be_emptied(host, self._servers[number])
        ]
        return sorted(able, key=lambda number: (len(self._servers[number]), self._shares[number]))

    def empty(self, source: int, most: int) -> None:
        """Unless something of it fits nowhere, or it has got something by now."""
        leaving = self._servers[source]
        if len(leaving) > most or source in self._came:
            return
        takes = self._takes.copy()
        takes[source] = False
        moves: list[ChosenMove] = []
        loads = self._loads.copy()
        for server in sorted(leaving, key=lambda one: -_size(one, self._hosts[source])):
            target = _tightest(server, loads, takes & self._bars.open_to(server.kind))
            if target is None:
                return
            loads.move(amounts(server.needs), source, target)
            moves.append(ChosenMove(server, source, target, 1 / len(leaving)))
        self._loads, self._takes = loads, takes
        self._came |= {move.target for move in moves}
        self.chosen += moves


def is_empty(host: LoadedHost) -> bool:
    return not host.servers and not any(host.used.get(name) for name in MEASURED)


def _can_be_emptied(host: LoadedHost, leaving: Sequence[MovableServer]) -> bool:
    """All its servers may leave, and nobody else holds anything of it: no move that is under way."""
    held = sum((amounts(server.needs) for server in leaving), amounts({}))
    return 0 < len(leaving) == host.servers and bool(np.all(amounts(host.used) <= held))


def _size(server: MovableServer, host: LoadedHost) -> float:
    """By the share that it takes of a host: the large ones find a place the hardest, and go first."""
    return max(
        server.needs.get(name, 0) / host.capacity[name] for name in MEASURED if host.capacity.get(name)
    )


def _tightest(server: MovableServer, loads: Loads, open_to: Mask) -> int | None:
    """Where the least room is left then, so that larger holes stay for larger servers."""
    needs = amounts(server.needs)
    targets = np.flatnonzero(loads.fits(needs) & open_to)
    if not len(targets):
        return None
    return int(targets[int(np.argmax(loads.shares_with(needs)[targets]))])
