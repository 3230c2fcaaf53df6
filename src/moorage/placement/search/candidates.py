"""Allocation candidates: every way to serve a request, best first, within the bounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from operator import length_hint

import numpy as np
from prometheus_client import Histogram

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.names import UnknownNameError
from moorage.placement.search.budget import Budget
from moorage.placement.search.combine import Combiner
from moorage.placement.search.order import in_order
from moorage.placement.search.plan import SearchPlan, make_plan
from moorage.placement.search.providers import ProviderFilters, find_providers
from moorage.placement.search.request import RequestGroup, SearchRequest
from moorage.placement.search.result import Candidate, LoneCandidates, SearchOptions, SearchResult, Strategy

SECONDS = Histogram(
    "moorage_placement_search_seconds",
    "Time to find the candidates for a request.",
    buckets=(0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
)


@SECONDS.time()
def find_candidates(
    fleet: Fleet, request: SearchRequest, options: SearchOptions | None = None
) -> SearchResult:
    """Search the fleet. An unknown class or trait name raises `UnknownNameError`."""
    options = options or SearchOptions()
    try:
        plan = make_plan(fleet, request)
    except UnknownNameError as error:
        if _answered_before(fleet, request, error.name):
            return SearchResult([], [], cut_short=False)
        raise
    if not plan.picks:
        return SearchResult([], [], cut_short=False)
    budget = Budget(options.max_steps)
    bound = _bound(request, options)
    finder = _Finder(plan, options, budget, bound)
    bounded_by_us = bound is not None and bound != request.limit
    if finder.all_lone:
        lone = finder.lone_candidates(bound)
        more = bounded_by_us and len(lone) < finder.anchor_count
        return SearchResult(lone, _summarised(fleet, request, lone.slots_used), more)
    found = _without_repeats(fleet, finder.candidates())
    candidates = list(islice(found, bound))
    more = bounded_by_us and next(found, None) is not None
    used = (slot for candidate in candidates for slot in candidate.allocations)
    return SearchResult(candidates, _summarised(fleet, request, used), more or budget.exhausted)


def _answered_before(fleet: Fleet, request: SearchRequest, unknown: str) -> bool:
    """Whether a group before the one with the unknown name finds nothing by itself.

    Then the reference answers with an empty list and never looks at that name; so do we.
    """
    if unknown in request.root_required | request.root_forbidden:
        return False
    for group in request.groups:
        if unknown in group.resources:
            return False
        if unknown in group.forbidden_traits.union(*group.required_traits):
            members = RequestGroup(member_of=group.member_of)
            return bool(group.member_of) and not find_providers(fleet, ProviderFilters(members))
        alone = replace(request, groups=(group,), same_subtrees=(), limit=1, nested=True)
        if not find_candidates(fleet, alone).candidates:
            return True
    return False


def _bound(request: SearchRequest, options: SearchOptions) -> int | None:
    bounds = [bound for bound in (request.limit, options.max_candidates) if bound is not None]
    return min(bounds, default=None)


class _Finder:
    """Turns the anchors of a plan into candidates, lazily and in order."""

    def __init__(self, plan: SearchPlan, options: SearchOptions, budget: Budget, bound: int | None) -> None:
        self._plan = plan
        self._options = options
        self._combiner = Combiner(plan, budget)
        lone = plan.lone_anchors()
        self._lone = lone.tobytes()
        anchors = np.flatnonzero(lone | (plan.anchors & ~plan.view.lone))
        self.anchor_count = len(anchors)
        self.all_lone = bool(lone[anchors].all()) and not plan.view.fleet.topology.sharer_set
        """One provider serves the whole request wherever it can be served at all."""
        expected = len(anchors) if bound is None else bound
        self._anchors = in_order(plan.view, anchors, plan.amounts, options, expected)
        names = plan.view.fleet.names
        self._resources = {names.class_name(number): amount for number, amount in plan.amounts.items()}
        self._suffixes = list(dict.fromkeys(pick.suffix for pick in plan.picks))

    def lone_candidates(self, bound: int | None) -> LoneCandidates:
        slots = self._plan.view.slots
        used = [slots[anchor] for anchor in islice(self._anchors, bound)]
        return LoneCandidates(used, self._resources, self._suffixes)

    def candidates(self) -> Iterator[Candidate]:
        if self._options.strategy is Strategy.DEPTH_FIRST:
            return self._tree_by_tree()
        return self._taking_turns()

    def _tree_by_tree(self) -> Iterator[Candidate]:
        for anchor in self._anchors:
            if self._lone[anchor]:
                yield self._lone_candidate(anchor)
            else:
                yield from self._combiner.candidates(anchor)

    def _taking_turns(self) -> Iterator[Candidate]:
        waiting: deque[Iterator[Candidate]] = deque()
        for anchor in self._anchors:
            if self._lone[anchor]:
                yield self._lone_candidate(anchor)
            else:
                yield from _turn(self._combiner.candidates(anchor), waiting)
        while waiting:
            yield from _turn(waiting.popleft(), waiting)

    def _lone_candidate(self, anchor: int) -> Candidate:
        slot = self._plan.view.slots[anchor]
        return Candidate({slot: self._resources}, {suffix: [slot] for suffix in self._suffixes})


def _turn(tree: Iterator[Candidate], waiting: deque[Iterator[Candidate]]) -> Iterator[Candidate]:
    """One candidate of a tree, which then waits for its next turn unless it is known to have no more."""
    candidate = next(tree, None)
    if candidate is not None:
        yield candidate
        if length_hint(tree, 1):
            waiting.append(tree)


def _without_repeats(fleet: Fleet, candidates: Iterator[Candidate]) -> Iterator[Candidate]:
    """Drop what was found before: only sharing providers alone can serve the same at two anchors."""
    sharers = fleet.topology.sharer_set
    if not sharers:
        yield from candidates
        return
    seen = set()
    for candidate in candidates:
        if all(slot in sharers for slots in candidate.mappings.values() for slot in slots):
            key = (
                frozenset((slot, frozenset(held.items())) for slot, held in candidate.allocations.items()),
                frozenset((suffix, frozenset(slots)) for suffix, slots in candidate.mappings.items()),
            )
            if key in seen:
                continue
            seen.add(key)
        yield candidate


def _summarised(fleet: Fleet, request: SearchRequest, used: Iterable[int]) -> list[int]:
    """Whole trees; but only the providers used, for clients that do not know trees."""
    if not fleet.has_trees or not request.nested:
        return list(dict.fromkeys(used))
    roots = dict.fromkeys(fleet.root_of(slot) for slot in used)
    return [slot for root in roots for slot in fleet.tree(root)]
