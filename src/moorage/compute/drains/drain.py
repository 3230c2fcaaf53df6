"""Drain: the record of a host that is being emptied, and of what becomes of each of its servers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from moorage.compute.servers.actions import Origin


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
    """What became of one server of the host."""

    WAITING = "waiting"
    MOVING = "moving"
    MOVED = "moved"
    GONE = "gone"
    """Its user deleted it, or moved it, before its turn came."""
    STAYING = "staying"
    """It is still on the host, and its reason says why."""


SETTLED = frozenset({LeavingState.MOVED, LeavingState.GONE, LeavingState.STAYING})


@dataclass(frozen=True, slots=True)
class Drain:
    id: int
    uuid: str
    host: str
    way: DrainWay
    max_parallel: int
    deadline_at: datetime | None
    state: DrainState
    disabled_host: bool
    origin: Origin
    created_at: datetime
    finished_at: datetime | None


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
