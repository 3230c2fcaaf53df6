"""The queues that a broker keeps for hosts, whether these are still there or not; and how full queues are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec


class Whose(StrEnum):
    """Who draws from a queue."""

    CONDUCTORS = "conductors"
    HOSTS = "hosts"


class HostQueue(msgspec.Struct, frozen=True):
    name: str
    host: str
    messages: int
    consumers: int


class HostQueues(Protocol):
    def hosts(self) -> Collection[str] | None:
        """Those that have queues; None if the broker can't be asked for all of them. BusError if it is
        away, as by the others."""

    def of_host(self, host: str) -> list[HostQueue]: ...

    def remove(self, queue: HostQueue) -> None:
        """If nobody listens to it: that the broker itself looks at. Is it gone: nothing happens."""

    def waiting(self) -> Mapping[Whose, int]:
        """Messages that nobody has drawn yet; of hosts, only if the broker can be asked for all of them."""
