"""How many more of a request would fit at once."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec
import numpy as np

from moorage.placement.fleet.column import Amounts
from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.view import View
from moorage.placement.search.budget import Budget
from moorage.placement.search.combine import Combiner
from moorage.placement.search.plan import SearchPlan, make_plan
from moorage.placement.search.request import SearchRequest
from moorage.placement.search.result import Candidate

WAYS_PER_TREE = 64
"""How many candidates of one tree are filled up."""
STEPS = 500_000


class Capacity(msgspec.Struct, frozen=True):
    """A count of copies of the request, each for a consumer of its own."""

    total: int
    exact: bool
    """False if the total is a lower bound: more might fit with a cleverer choice of providers."""
    trees: int
    """How many trees can take one at least."""
    by_aggregate: dict[str, int] | None = None
    """Counts by aggregate of the root provider; a root in two aggregates counts in both."""


def how_many_fit(fleet: Fleet, request: SearchRequest, by_aggregate: bool = False) -> Capacity:
    """Fill the fleet up with copies of the request, without changing it."""
    plan = make_plan(fleet, request)
    copies = _copies_on_lone(plan)
    exact = _fill_trees(plan, copies)
    return Capacity(
        total=int(copies.sum()),
        exact=exact,
        trees=int(np.count_nonzero(copies)),
        by_aggregate=_by_aggregate(plan.view, copies) if by_aggregate else None,
    )


def _copies_on_lone(plan: SearchPlan) -> Amounts:
    """By anchor: the copies that a provider which stands alone can take; exact, and no search needed."""
    view = plan.view
    copies = np.zeros(view.size, np.int64)
    able = plan.lone_anchors()
    if not plan.picks:
        return copies
    copies[able] = np.iinfo(np.int64).max
    for class_id, amount in plan.amounts.items():
        rows = view.rows(class_id)
        copies[rows.where] = np.minimum(copies[rows.where], (rows.capacity - rows.used) // amount)
    copies[~able] = 0
    return copies


def _fill_trees(plan: SearchPlan, copies: Amounts) -> bool:
    """Fill the other anchors one candidate after the other; answers whether the count is exact.

    What fits later fits now, so the candidates of the moment are all there ever will be. As long as no
    two of them draw on the same inventory, filling up each in turn gives the true number.
    """
    room = _Room(plan.view.fleet)
    budget = Budget(STEPS)
    combiner = Combiner(plan, budget)
    exact = True
    for anchor in np.flatnonzero(plan.anchors & ~plan.view.lone).tolist():
        ways = list(islice(combiner.candidates(anchor), WAYS_PER_TREE + 1))
        exact = exact and len(ways) <= WAYS_PER_TREE
        copies[anchor] = sum(room.fill(way) for way in ways)
    return exact and not budget.exhausted and not room.contended


class _Room:
    """What is free of each inventory while the fleet is filled up in thought."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._free: dict[tuple[int, str], int] = {}
        self._drawn = Counter[tuple[int, str]]()

    @property
    def contended(self) -> bool:
        """Whether any inventory served more than one candidate."""
        return any(count > 1 for count in self._drawn.values())

    def fill(self, way: Candidate) -> int:
        """Take as many copies of a candidate as there is room for."""
        needs = {
            (slot, name): amount
            for slot, resources in way.allocations.items()
            for name, amount in resources.items()
        }
        count = min(self._free_of(*place) // amount for place, amount in needs.items())
        for place, amount in needs.items():
            self._free[place] -= count * amount
        self._drawn.update(needs.keys())
        return count

    def _free_of(self, slot: int, name: str) -> int:
        if (slot, name) not in self._free:
            class_id = self._fleet.names.class_id(name)
            row = self._fleet.rows_of[slot][class_id]
            capacity, used = self._fleet.columns[class_id].capacity_and_used(row)
            self._free[slot, name] = capacity - used
        return self._free[slot, name]


def _by_aggregate(view: View, copies: Amounts) -> dict[str, int]:
    fleet = view.fleet
    per_slot = np.zeros(fleet.size, np.int64)
    per_slot[np.asarray(view.slots, np.intp)] = copies
    sums = {uuid: int(per_slot[members.slots()].sum()) for uuid, members in fleet.aggregates.items()}
    return {uuid: count for uuid, count in sorted(sums.items()) if count}
