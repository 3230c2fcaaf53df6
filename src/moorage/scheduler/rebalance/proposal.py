"""Proposal: the moves that win the most, and what they win in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec
import numpy as np

from moorage.scheduler.rebalance.freeing import is_empty
from moorage.scheduler.rebalance.picture import ChosenMove, CloudPicture, Loads, Numbers, amounts


class Goal(StrEnum):
    SPREAD = "spread"
    """Hosts are used alike."""
    FREE = "free"
    """Hosts become empty."""


class Measure(msgspec.Struct, frozen=True):
    """How hosts are used: per cent of the scarcest resource of each."""

    mean: float
    deviation: float
    """The standard deviation, in percentage points."""
    highest: float
    lowest: float
    empty: int
    """Hosts that have no servers."""


class WorthwhileMove(msgspec.Struct, frozen=True):
    server: str
    name: str
    flavor: str
    move: str
    source: str
    target: str
    source_share: tuple[float, float]
    """Per cent used there before and after."""
    target_share: tuple[float, float]
    gain: float
    """In percentage points of the deviation, or in hosts that become free."""


class Proposal(msgspec.Struct, frozen=True):
    goal: Goal
    hosts: int
    servers: int
    movable: int
    before: Measure
    after: Measure
    moves: list[WorthwhileMove]


def told(goal: Goal, picture: CloudPicture, chosen: Sequence[ChosenMove]) -> Proposal:
    """What these moves win, counted anew in the order in which they were chosen."""
    loads = Loads(picture.hosts)
    counts = [host.servers for host in picture.hosts]
    strangers = [not host.servers and not is_empty(host) for host in picture.hosts]
    before = _measure(loads.shares(), counts, strangers)
    moves = []
    for move in chosen:
        old = loads.shares()
        loads.move(amounts(move.server.needs), move.source, move.target)
        counts[move.source] -= 1
        counts[move.target] += 1
        moves.append(_proposed(goal, picture, move, old, loads.shares()))
    return Proposal(
        goal,
        hosts=len(picture.hosts),
        servers=sum(host.servers for host in picture.hosts),
        movable=len(picture.servers),
        before=before,
        after=_measure(loads.shares(), counts, strangers),
        moves=moves,
    )


def _proposed(
    goal: Goal, picture: CloudPicture, move: ChosenMove, old: Numbers, new: Numbers
) -> WorthwhileMove:
    source, target = move.source, move.target
    return WorthwhileMove(
        server=move.server.uuid,
        name=move.server.name,
        flavor=move.server.flavor,
        move=move.server.move,
        source=picture.hosts[source].host,
        target=picture.hosts[target].host,
        source_share=(_per_cent(old[source]), _per_cent(new[source])),
        target_share=(_per_cent(old[target]), _per_cent(new[target])),
        gain=round(move.gain, 4) if goal is Goal.FREE else round(100 * move.gain, 4),
    )


def _measure(shares: Numbers, counts: Sequence[int], strangers: Sequence[bool]) -> Measure:
    if not len(shares):
        return Measure(0.0, 0.0, 0.0, 0.0, 0)
    empty = sum(not count and not held for count, held in zip(counts, strangers, strict=True))
    return Measure(
        mean=_per_cent(shares.mean()),
        deviation=round(100 * float(np.std(shares)), 4),
        highest=_per_cent(shares.max()),
        lowest=_per_cent(shares.min()),
        empty=empty,
    )


def _per_cent(share: float) -> float:
    return round(100 * float(share), 2)
