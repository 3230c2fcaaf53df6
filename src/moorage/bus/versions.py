"""What agents have learnt, version by version: conductors ask no more of them than the oldest one knows."""

from __future__ import annotations

from enum import IntEnum


class AgentVersion(IntEnum):
    """Grows when agents learn something that conductors have to know about."""

    FIRST = 1
    MOVES = 2
    """Hand over, take over, expect and migrate servers."""
    SHARED_NODES = 3
    """Bid for nodes that several hosts could own."""
    EARLY_PORTS = 4
    """Know which of a server's ports a conductor made, so that they make none themselves, and leave those
    alone when a spawn fails."""
    BOUND_PORTS = 5
    """Take ports that a conductor has bound."""


NEWEST = max(AgentVersion)
