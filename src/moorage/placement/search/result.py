"""What a search answers, and how far it may go for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, overload


class TreeOrder(StrEnum):
    """Which trees come first, so that a limit keeps the ones one would want."""

    SPREAD = "spread"
    PACK = "pack"
    RANDOM = "random"


class Strategy(StrEnum):
    """Whether a tree gives all its candidates at once or the trees take turns."""

    DEPTH_FIRST = "depth-first"
    BREADTH_FIRST = "breadth-first"


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The operator's choices for every search. Work is bounded unless told otherwise."""

    order: TreeOrder = TreeOrder.SPREAD
    strategy: Strategy = Strategy.BREADTH_FIRST
    max_candidates: int | None = 10_000
    max_steps: int | None = 200_000
    """How many choices of a provider may be tried, over all trees."""
    seed: int | None = None
    """Makes the random order repeatable."""


class Candidate(NamedTuple):
    """One way to satisfy the whole request. Providers are given by slot."""

    allocations: dict[int, dict[str, int]]
    mappings: dict[str, list[int]]
    """By suffix of the group: the providers that satisfy it."""


@dataclass(frozen=True, slots=True)
class LoneCandidates(Sequence[Candidate]):
    """Candidates of one provider each, which serves the whole request.

    Most answers are such, with a thousand of them that differ in nothing but the provider: so nothing but
    the slots is kept, and whoever writes an answer can write what they share once.
    """

    slots_used: list[int]
    resources: dict[str, int]
    suffixes: list[str]

    def __len__(self) -> int:
        return len(self.slots_used)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...

    @overload
    def __getitem__(self, index: slice) -> LoneCandidates: ...

    def __getitem__(self, index: int | slice) -> Candidate | LoneCandidates:
        if isinstance(index, slice):
            return LoneCandidates(self.slots_used[index], self.resources, self.suffixes)
        slot = self.slots_used[index]
        return Candidate({slot: self.resources}, {suffix: [slot] for suffix in self.suffixes})


@dataclass(frozen=True, slots=True)
class SearchResult:
    candidates: Sequence[Candidate]
    summarised: list[int]
    """The slots of the providers to describe along with the candidates."""
    cut_short: bool
    """True if a bound on the work ended the search, so that there may be more candidates."""
