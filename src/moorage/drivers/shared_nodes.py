"""Nodes that several hosts could own, each of them at a time: what a driver does whose nodes are such."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from moorage.drivers.contract import Node

SELECTION = "selection"
"""Where the terms of a host say who chooses a server's machine, if not the scheduler."""
RESERVATION = "reservation"
"""The driver does: the host has a pool instead of nodes."""
KEEPS_POOLS = "pools"
"""Where they say that the host can look after pools, though it has nodes."""


def has_pool(terms: Mapping[str, Any]) -> bool:
    return terms.get(SELECTION) == RESERVATION


def keeps_pools(terms: Mapping[str, Any]) -> bool:
    return has_pool(terms) or bool(terms.get(KEEPS_POOLS))


class SharedNode(msgspec.Struct, frozen=True):
    """A node that any of several hosts could own."""

    node: Node
    free: bool
    """Nobody's server is on it, so that it may go to another host."""
    withdrawn: bool = False
    """It is no node of the cloud any more, though its machine is there: unless a server is coming to it."""


class Held(NamedTuple):
    """A machine that is held for a server."""

    server_uuid: str
    node_uuid: str
    """The node that the server should be on, for it to be there rightly."""


@runtime_checkable
class SharedNodes(Protocol):
    """What a driver does besides whose nodes are shared out among hosts: it works only on those that it was
    told to keep."""

    def look(self) -> None:
        """Look at the machines anew; what the others answer is as old as this. DriverError if it can't."""

    def terms(self) -> dict[str, Any]:
        """Which nodes it serves, and with whom: hosts that say the same are peers."""

    def eligible(self) -> Mapping[str, SharedNode]:
        """The nodes that it serves, by UUID, whoever owns them; the same object until something changes."""

    def share(self, host: str, members: Sequence[str]) -> set[str]:
        """Those of the eligible nodes that this host should own among these."""

    def look_up_missing(self, node_uuid: str) -> SharedNode | None:
        """What became of a node that is not eligible any more; None only if it is certain that it is gone."""

    def keep(self, node_uuids: Collection[str]) -> None:
        """These are this host's from now on, and no others."""

    def extend_lease(self, until: float) -> None:
        """That they are this host's may be relied on until then, by `uptime`; after that, nothing is changed
        until it is said anew."""

    def lost_servers(self) -> set[str]:
        """Servers whose machines are certainly gone, if their nodes don't tell that: those in pools."""

    def held(self) -> set[Held]:
        """What machines are held for, in whatever state: this host's, and such as nobody may keep."""

    def sweep(self, held: Held) -> bool:
        """Let go of a machine that is held for a server that is not there; False if there is nothing to do
        here.

        What does not say itself that it is ours is left alone.
        """
