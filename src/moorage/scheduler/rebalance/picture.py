"""The picture that a proposal is made from: what hosts have and use, and the servers that may leave them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MEASURED = ("VCPU", "MEMORY_MB", "DISK_GB")
"""What a host is measured by: the scarcest of these."""

Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LoadedHost:
    """One node that servers can leave and come to."""

    host: str
    node_uuid: str
    capacity: Mapping[str, int]
    """By resource class, with what is reserved and the allocation ratio counted in."""
    used: Mapping[str, int]
    servers: int = 0
    """All that are there, those that have to stay too."""


@dataclass(frozen=True, slots=True)
class MovableServer:
    id: int
    uuid: str
    name: str
    flavor: str
    node_uuid: str
    needs: Mapping[str, int]
    move: str
    """How it would be moved."""
    kind: Hashable
    """What may be on one host and not on another: the same for servers of one kind."""


@dataclass(frozen=True, slots=True)
class CloudPicture:
    hosts: Sequence[LoadedHost]
    servers: Sequence[MovableServer]


@dataclass(frozen=True, slots=True)
class ChosenMove:
    """Hosts by their numbers in the picture."""

    server: MovableServer
    source: int
    target: int
    gain: float
    """Of the standard deviation of used shares, or the part of a freed host."""


class Bars:
    """What the scheduler has said no to: kinds of servers, and the hosts where they may not be."""

    def __init__(self, picture: CloudPicture) -> None:
        self._number = {host.node_uuid: number for number, host in enumerate(picture.hosts)}
        self._all = np.ones(len(picture.hosts), np.bool_)
        self._open: dict[Hashable, Mask] = {}

    def open_to(self, kind: Hashable) -> Mask:
        """The hosts that nobody has said no about."""
        return self._open.get(kind, self._all)

    def bar(self, kind: Hashable, target: int) -> None:
        self._own(kind)[target] = False

    def bar_everywhere(self, kind: Hashable) -> None:
        self._own(kind)[:] = False

    def leave_only(self, kind: Hashable, node_uuids: Collection[str]) -> None:
        """Some of these may not be of the picture."""
        left = np.zeros_like(self._all)
        left[[self._number[uuid] for uuid in node_uuids if uuid in self._number]] = True
        self._own(kind)[:] &= left

    def _own(self, kind: Hashable) -> Mask:
        return self._open.setdefault(kind, self._all.copy())


class Loads:
    """What hosts use while moves are thought out, one after the other.

    A server that leaves makes its old host look emptier, but its room there is given to no other: so moves
    can be made in any order, or at the same time, and no host is ever overfilled.
    """

    def __init__(self, hosts: Sequence[LoadedHost]) -> None:
        self._capacity = np.array([amounts(host.capacity) for host in hosts]).reshape(-1, len(MEASURED))
        self._used = np.array([amounts(host.used) for host in hosts]).reshape(-1, len(MEASURED))
        self._room = self._capacity - self._used
        self._counts = self._capacity > 0  # what a host does not have, or shares with others, is not its load
        self._divisor = np.where(self._counts, self._capacity, 1.0)

    def copy(self) -> Loads:
        """For moves that may come to nothing."""
        other = copy(self)
        other._used, other._room = self._used.copy(), self._room.copy()
        return other

    def shares(self) -> Numbers:
        """Of each host: how much of its scarcest resource is used."""
        return self._of(self._used)

    def shares_with(self, needs: Numbers) -> Numbers:
        """Of each host, if this came to it."""
        return self._of(self._used + needs)

    def share_without(self, number: int, needs: Numbers) -> float:
        """Of one host, if this left it."""
        left = np.maximum(self._used[number] - needs, 0.0)
        return float(np.max(np.where(self._counts[number], left / self._divisor[number], 0.0)))

    def fits(self, needs: Numbers) -> Mask:
        """The hosts that have room for this, beside all that is there and all that comes."""
        fitting: Mask = np.all(~self._counts | (self._room >= needs), axis=1)
        return fitting

    def move(self, needs: Numbers, source: int, target: int) -> None:
        self._used[source] = np.maximum(self._used[source] - needs, 0.0)
        self._used[target] += needs
        self._room[target] -= needs

    def _of(self, used: Numbers) -> Numbers:
        shares: Numbers = np.max(np.where(self._counts, used / self._divisor, 0.0), axis=1)
        return shares


def amounts(given: Mapping[str, int]) -> Numbers:
    """In the order of what is measured."""
    return np.array([given.get(name, 0) for name in MEASURED], np.float64)


def by_host(picture: CloudPicture) -> list[list[MovableServer]]:
    """The servers that may leave each host."""
    number = {host.node_uuid: place for place, host in enumerate(picture.hosts)}
    found: list[list[MovableServer]] = [[] for _ in picture.hosts]
    for server in picture.servers:
        found[number[server.node_uuid]].append(server)
    return found
