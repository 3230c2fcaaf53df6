"""The trace: the record of one scheduling decision, from which it can be told again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moorage.scheduler.filters.contract import Reason
from moorage.scheduler.narrowing import Narrowing


class Place(msgspec.Struct, frozen=True):
    """A node and the host that owns it."""

    host: str
    node: str
    node_uuid: str

    def __str__(self) -> str:
        return self.host if self.host == self.node else f"{self.node} of host {self.host}"


class PassedOver(msgspec.Struct, frozen=True):
    """One host that a filter excluded."""

    place: Place
    reason: Reason


class Exclusion(msgspec.Struct):
    """What one filter excluded: how many, and a few of them."""

    filter: str
    count: int = 0
    examples: list[PassedOver] = []
    kinds: dict[str, int] = {}
    """How many for each kind of reason."""


class Ranked(msgspec.Struct, frozen=True):
    """One host of those left, with what each weigher gave it."""

    place: Place
    weight: float
    shares: dict[str, float]


class Attempt(msgspec.Struct, frozen=True):
    """One host that was tried, and what came of it."""

    place: Place
    step: str
    """How far it got: `claim`, `agree`, `bind`, `spawn`."""
    outcome: str
    """`done`, `refused`, `failed`; `under way`; `cancelled` if the server was deleted meanwhile."""
    detail: str = ""


class NearMiss(msgspec.Struct, frozen=True):
    """A tree that Placement could nearly have offered."""

    name: str
    failures: list[str]


class Emptiness(msgspec.Struct, frozen=True):
    """Placement's account of why it had so little to offer."""

    trees: int
    trees_left: int
    kind: str = ""
    """Of the condition that alone excludes most: as Placement names it."""
    subject: str = ""
    excluded: int = 0
    nearest: list[NearMiss] = []
    allowed: int | None = None
    """How many trees are where the server may go, if aggregates say where; the condition is among these."""

    @classmethod
    def of(cls, why: Mapping[str, Any]) -> Emptiness:
        """From the answer of `PlacementClient.why`."""
        found = cls._of_all(why)
        inside = _worst_inside(why.get("conditions", ()))
        if inside is None:
            return found
        kind, subject, excluded, allowed = inside
        return msgspec.structs.replace(found, kind=kind, subject=subject, excluded=excluded, allowed=allowed)

    @classmethod
    def _of_all(cls, why: Mapping[str, Any]) -> Emptiness:
        worst = why.get("excludes_most") or {}
        misses = [
            NearMiss(miss["name"], [failure["sentence"] for failure in miss["failures"]])
            for miss in why.get("near_misses", ())
        ]
        return cls(
            trees=why["total"]["trees"],
            trees_left=why["trees_left"],
            kind=worst.get("kind", ""),
            subject=worst.get("subject", ""),
            excluded=worst.get("excludes_alone", {}).get("trees", 0),
            nearest=misses,
        )


_AGGREGATES = ("member_of", "forbidden_aggregates")
_PLACES = ("root_required", "root_forbidden", "in_tree", *_AGGREGATES)
"""Conditions about where a server may be; they come before those about what it needs there."""


def _worst_inside(conditions: Sequence[Mapping[str, Any]]) -> tuple[str, str, int, int] | None:
    """Among the trees that aggregates allow: kind and subject of the condition that excludes the most of
    those that the ones before it left, how many, and of how many. None if that can't be told."""
    about_places = [condition["kind"] in _PLACES for condition in conditions]
    count = sum(about_places)
    if not all(about_places[:count]) or not any(one["kind"] in _AGGREGATES for one in conditions[:count]):
        return None
    allowed = before = conditions[count - 1]["left"]["trees"]
    worst = ("", "", 0)
    for condition in conditions[count:]:
        after = condition["left"]["trees"]
        if before - after > worst[2]:
            worst = (condition["kind"], condition["subject"], before - after)
        before = after
    return (*worst, allowed) if allowed and worst[2] else None


def excluded_by_aggregates(why: Mapping[str, Any]) -> int | None:
    """How many providers are excluded by their aggregates, from the answer of `PlacementClient.why`."""
    for condition in why["conditions"]:
        if condition["kind"] in _AGGREGATES:
            excluded: int | None = condition["excludes_alone"]["providers"]
            return excluded
    return None


class Trace(msgspec.Struct):
    """One decision. It is kept as JSON: fields may be added, not renamed."""

    server_uuid: str
    query: list[tuple[str, str]]
    narrowings: list[Narrowing] = []
    """What prefilters put into the query, and why."""
    candidates: int = 0
    nodes: int = 0
    """How many nodes those candidates are on."""
    excluded: list[Exclusion] = []
    left: int = 0
    ranking: list[Ranked] = []
    """The best of those left, best first."""
    chosen: Place | None = None
    alternates: list[Place] = []
    attempts: list[Attempt] = []
    why: Emptiness | None = None
    problem: str = ""
    """What made the request impossible before any host was looked at."""
