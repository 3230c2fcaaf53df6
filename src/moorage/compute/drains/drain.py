"""Drain: the record of servers that leave their hosts, and of what becomes of each.

They are all those of a host that is being emptied, or a few of several hosts that are rebalanced.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from moorage.compute.servers.actions import Origin
from moorage.scheduler.rebalance.proposal import Goal


class DrainWay(StrEnum):
    """How servers may leave."""

    AUTO = "auto"
    """Live, if a server runs and its host can; cold otherwise."""
    LIVE = "live"
    COLD = "cold"
    EVACUATE = "evacuate"
    """From a host that is dead."""


class DrainState(StrEnum):
    RUNNING = "running"
    CANCELLING = "cancelling"
    """Nothing more begins; what moves goes on until it is there."""
    CANCELLED = "cancelled"
    FINISHED = "finished"


class LeavingState(StrEnum):
    """What became of one server."""

    WAITING = "waiting"
    MOVING = "moving"
    MOVED = "moved"
    GONE = "gone"
    """Its user deleted it, or moved it, before its turn came."""
    STAYING = "staying"
    """It is still where it was, and its reason says why."""


SETTLED = frozenset({LeavingState.MOVED, LeavingState.GONE, LeavingState.STAYING})


@dataclass(frozen=True, slots=True)
class Drain:
    id: int
    uuid: str
    host: str | None
    """None of a rebalance, whose servers leave several."""
    way: DrainWay
    max_parallel: int
    deadline_at: datetime | None
    state: DrainState
    disabled_host: bool
    origin: Origin
    created_at: datetime
    finished_at: datetime | None
    goal: Goal | None = None
    """Of a rebalance."""

    @property
    def noun(self) -> str:
        """What operators call it."""
        return "drain" if self.goal is None else "rebalance"


@dataclass(frozen=True, slots=True)
class WantedMove:
    """One of a rebalance."""

    server_uuid: str
    source_host: str
    target_host: str


@dataclass(frozen=True, slots=True)
class LeavingServer:
    server_id: int
    server_uuid: str
    state: LeavingState
    move: str | None
    tries: int
    reason: str | None
    due_at: datetime
    updated_at: datetime
    source_host: str | None = None
    target_host: str | None = None
    """Where it shall go; None if any host will do."""
