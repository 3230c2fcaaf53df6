"""Where a server goes, and what an operation that looks for a place remembers."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage.compute.moves.move import Move, MoveEnd
from moorage.compute.servers.traces import AttemptRecord


class Placed(msgspec.Struct, frozen=True):
    """A place that is claimed."""

    host: str
    node: str
    node_uuid: str
    zone: str | None = None
    cell: str = ""
    mappings: dict[str, list[str]] = {}
    """By suffix of a request group: the providers that serve it."""
    binds_ports: bool = False
    """Whoever keeps the server binds its ports."""
    starts_paused: bool = False
    """Whoever keeps the server can have it hold still until they carry traffic."""
    allocations: dict[str, dict[str, int]] = {}
    """Amounts by resource class, by provider; empty if all of it is of the node itself."""

    @property
    def end(self) -> MoveEnd:
        return MoveEnd(self.host, self.node, self.node_uuid, self.zone)


class Placing(msgspec.Struct, kw_only=True, omit_defaults=True):
    placed: Placed | None = None
    tried_nodes: list[str] = []
    full_cells: list[str] = []
    """Where there was no address for it."""
    failed_hosts: list[str] = []
    """Hosts that could not bind its ports: it is not about their nodes."""
    attempts: list[AttemptRecord] = []
    """Those that came to nothing."""
    dropped: int = 0
    """The highest generation at which a claim of the server was dropped, for want of room for another one."""

    @property
    def place(self) -> Placed:
        """For steps that come after one was found."""
        assert self.placed is not None
        return self.placed

    def failures(self) -> int:
        """How many hosts have failed it."""
        return sum(1 for attempt in self.attempts if attempt.outcome == "failed")


class MoveState(Placing, kw_only=True, omit_defaults=True):
    """What a move remembers."""

    move: Move
    decided_at: int | None = None
    """The attempt at which its destination was decided on."""
    last_error: str | None = None
    """Why it goes back for good; it is there from the moment that this is certain."""
    tasks: dict[str, int] = {}
    """By host, the attempt of the last task that it was given."""
    aborted: bool = False
    parcel: dict[str, Any] | None = None
    """What the source gave along, once it has handed the server over."""
