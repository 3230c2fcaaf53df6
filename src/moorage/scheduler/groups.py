"""Request groups: what of a server's needs goes together, as Placement's query strings put it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from moorage.scheduler.narrowing import inside, outside

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RequestGroup:
    """Resources that go together, and what their provider must be; without a suffix a tree may share them."""

    suffix: str = ""
    resources: dict[str, int] = field(default_factory=dict, hash=False)
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    """Aggregates: at least one of each set."""
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None

    def pairs(self) -> Iterator[Pair]:
        """In a fixed order, so that equal requests are equal queries."""
        suffix = self.suffix
        amounts = ",".join(f"{name}:{amount}" for name, amount in sorted(self.resources.items()))
        yield f"resources{suffix}", amounts
        traits = [*sorted(self.required_traits), *(f"!{name}" for name in sorted(self.forbidden_traits))]
        if traits:
            yield f"required{suffix}", ",".join(traits)
        for aggregates in self.member_of:
            yield f"member_of{suffix}", inside(aggregates)
        if self.forbidden_aggregates:
            yield f"member_of{suffix}", outside(self.forbidden_aggregates)
        if self.in_tree is not None:
            yield f"in_tree{suffix}", self.in_tree

    def requiring(self, traits: frozenset[str]) -> RequestGroup:
        return replace(self, required_traits=self.required_traits | traits)

    def in_one_of(self, aggregates: frozenset[str]) -> RequestGroup:
        return replace(self, member_of=(*self.member_of, aggregates))

    def outside(self, aggregates: frozenset[str]) -> RequestGroup:
        return replace(self, forbidden_aggregates=self.forbidden_aggregates | aggregates)

    def within(self, root_uuid: str) -> RequestGroup:
        return replace(self, in_tree=root_uuid)
