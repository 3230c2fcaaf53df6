"""What a query becomes for a Placement that is older than it: what that one can't check is checked here.

Versions below the oldest that we work with are refused when the service is first asked (`link.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from moorage.core.microversions import Version
from moorage.placement.client.contract import AllocationRequest, Candidates, ProviderSummary
from moorage.placement.microversions import Microversion

Pair = tuple[str, str]

OLDEST: Version = Microversion.RESHAPER
"""Trees, consumer generations and the reshaper: what can't be made up for."""

_LATER: tuple[tuple[Version, str], ...] = (
    (Microversion.CANDIDATES_IN_ONE_TREE, "whether a candidate is in the tree asked for is checked here"),
    (Microversion.FORBIDDEN_AGGREGATES, "candidates in forbidden aggregates are left out here"),
    (Microversion.NAMED_REQUEST_GROUPS, "named request groups are numbered"),
    (
        Microversion.MAPPINGS,
        "which provider serves which request group is not known if two groups ask for one class",
    ),
    (Microversion.ROOT_TRAITS, "traits of root providers, such as that a host is disabled, are checked here"),
    (Microversion.CONSUMER_TYPES, "consumers have no type"),
)
_PARAMETER = re.compile(r"^(resources|required|member_of|in_tree)(.*)$")
_NUMBER = re.compile(r"^[1-9][0-9]*$")
_WIDENING = 8


def missing(version: Version) -> list[str]:
    """What is different because of the version, in words for the log."""
    return [words for since, words in _LATER if version < since]


@dataclass(frozen=True, slots=True)
class CandidatesQuery:
    """One candidates query as the service gets it, and the conditions that are left to us."""

    query: tuple[Pair, ...]
    wanted: int | None = None
    """The limit that was asked for."""
    limit: int | None = None
    """The limit that is sent: larger, if too many candidates fell to our own conditions."""
    trees: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()
    """Aggregates that no provider of a candidate may be in."""
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    classes: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By suffix, the resource classes of the groups, if the service won't say who serves which."""

    @classmethod
    def of(cls, query: Sequence[Pair], version: Version) -> CandidatesQuery:
        limit = dict(query).get("limit")
        bound = int(limit) if limit is not None and limit.isdecimal() else None
        question = cls(tuple(query), bound, bound)
        if version < Microversion.ROOT_TRAITS:
            question = question._without_root_traits()
        if version < Microversion.FORBIDDEN_AGGREGATES:
            question = question._without_forbidden_aggregates()
        if version < Microversion.CANDIDATES_IN_ONE_TREE:
            question = question._without_trees()
        if version < Microversion.MAPPINGS:
            question = replace(question, classes=_distinct_classes(query))
        return question._numbered() if version < Microversion.NAMED_REQUEST_GROUPS else question

    def pairs(self) -> list[Pair]:
        return [(name, str(self.limit) if name == "limit" else value) for name, value in self.query]

    def wider(self, received: int, kept: int) -> CandidatesQuery | None:
        """The question for more candidates, if too few of those received were any good and there are more."""
        if self.limit is None or self.wanted is None or received < self.limit or kept >= self.wanted:
            return None
        return replace(self, limit=self.limit * _WIDENING)

    def kept(self, found: Candidates, members: frozenset[str]) -> Candidates:
        """Those that meet our conditions too; `members` are the providers in aggregates to stay out of."""
        requests = [
            self._mapped(request)
            for request in found.allocation_requests
            if self._suits(request, found.provider_summaries, members)
        ]
        return Candidates(requests[: self.wanted], found.provider_summaries)

    def _suits(
        self, request: AllocationRequest, summaries: Mapping[str, ProviderSummary], members: frozenset[str]
    ) -> bool:
        roots = {uuid: summaries[uuid].root_provider_uuid or uuid for uuid in request.allocations}
        places = {*roots, *roots.values()}
        trees = {summaries[uuid].root_provider_uuid if uuid in summaries else uuid for uuid in self.trees}
        if trees and trees != set(roots.values()):
            return False
        if places & members:
            return False
        traits = [set(summaries[root].traits) for root in roots.values() if root in summaries]
        return all(self.root_required <= held and not self.root_forbidden & held for held in traits)

    def _mapped(self, request: AllocationRequest) -> AllocationRequest:
        if not self.classes:
            return request
        mappings = {
            suffix: [
                uuid
                for uuid, held in request.allocations.items()
                if not classes.isdisjoint(held["resources"])
            ]
            for suffix, classes in self.classes.items()
        }
        return AllocationRequest(request.allocations, mappings)

    def _without_root_traits(self) -> CandidatesQuery:
        named = [name for key, value in self.query if key == "root_required" for name in value.split(",")]
        return replace(
            self,
            query=tuple(pair for pair in self.query if pair[0] != "root_required"),
            root_required=frozenset(name for name in named if not name.startswith("!")),
            root_forbidden=frozenset(name[1:] for name in named if name.startswith("!")),
        )

    def _without_forbidden_aggregates(self) -> CandidatesQuery:
        def forbids(pair: Pair) -> bool:
            return _split(pair[0])[0] == "member_of" and pair[1].startswith("!")

        values = [value.removeprefix("!").removeprefix("in:") for _, value in filter(forbids, self.query)]
        return replace(
            self,
            query=tuple(pair for pair in self.query if not forbids(pair)),
            outside=frozenset(uuid for value in values for uuid in value.split(",")),
        )

    def _without_trees(self) -> CandidatesQuery:
        return replace(
            self,
            query=tuple(pair for pair in self.query if _split(pair[0])[0] != "in_tree"),
            trees=frozenset(value for name, value in self.query if _split(name)[0] == "in_tree"),
        )

    def _numbered(self) -> CandidatesQuery:
        """Each suffix that is no number gets one that nobody uses."""
        suffixes = dict.fromkeys(_split(name)[1] for name, _ in self.query)
        taken = {suffix for suffix in suffixes if _NUMBER.match(suffix)}
        numbers = _unused(taken)
        numbered = {suffix: suffix if not suffix or suffix in taken else next(numbers) for suffix in suffixes}
        renamed = [
            (kind + numbered[suffix], value) for name, value in self.query for kind, suffix in [_split(name)]
        ]
        return replace(self, query=tuple(renamed))


def _distinct_classes(query: Sequence[Pair]) -> dict[str, frozenset[str]]:
    """By suffix the classes that are asked for; nothing if two groups ask for the same one."""
    found = {
        suffix: frozenset(amount.partition(":")[0] for amount in value.split(","))
        for name, value in query
        for kind, suffix in [_split(name)]
        if kind == "resources"
    }
    apart = sum(map(len, found.values())) == len(frozenset().union(*found.values()))
    return found if apart else {}


def _split(name: str) -> Pair:
    """A parameter's kind and suffix; parameters of the whole request have none."""
    match = _PARAMETER.match(name)
    return (match[1], match[2]) if match else (name, "")


def _unused(taken: set[str]) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        if str(number) not in taken:
            yield str(number)
