"""The conditions between the providers of a candidate, tried alone and one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from moorage.placement.fleet.slotset import Mask
from moorage.placement.search.budget import Budget
from moorage.placement.search.checks import ConditionKind
from moorage.placement.search.combine import Combiner
from moorage.placement.search.plan import SearchPlan
from moorage.placement.search.request import GroupPolicy, SearchRequest

MOST_TREES = 1000
"""How many trees are searched for combinations; those beyond are taken to have one."""
STEPS = 100_000


@dataclass(frozen=True, slots=True)
class CombinationOutcome:
    """What one condition on combinations leaves, out of the anchors of the plan."""

    kind: ConditionKind
    subject: str
    alone: Mask
    """The anchors that have a candidate if this is the only such condition."""
    in_order: Mask
    """The anchors that have one under this condition and those before it."""
    exact: bool
    """False if there were too many trees to try them all."""


def outcomes(plan: SearchPlan) -> list[CombinationOutcome]:
    """One for each such condition that the request has, the mere adding up of amounts first."""
    free = replace(plan.request, group_policy=None, same_subtrees=(), nested=True)
    in_order = free
    found = []
    for kind, subject, alone in _conditions(plan, free):
        in_order = _both(in_order, alone)
        by_itself, exact_alone = _combinable(replace(plan, request=alone))
        left, exact = _combinable(replace(plan, request=in_order))
        found.append(CombinationOutcome(kind, subject, by_itself, left, exact and exact_alone))
    return found


def _conditions(plan: SearchPlan, free: SearchRequest) -> Iterator[tuple[ConditionKind, str, SearchRequest]]:
    """Each condition with the request that has it as its only one."""
    request = plan.request
    if len(plan.picks) > 1:
        yield ConditionKind.TOGETHER, "", free
    if not request.nested and plan.view.fleet.has_trees:
        yield ConditionKind.ONE_PROVIDER_PER_TREE, "", replace(free, nested=False)
    if plan.isolated > 1:
        yield (
            ConditionKind.GROUP_POLICY,
            GroupPolicy.ISOLATE.value,
            replace(free, group_policy=GroupPolicy.ISOLATE),
        )
    for subtree in request.same_subtrees:
        yield ConditionKind.SAME_SUBTREE, ",".join(sorted(subtree)), replace(free, same_subtrees=(subtree,))


def _both(one: SearchRequest, other: SearchRequest) -> SearchRequest:
    return replace(
        one,
        nested=one.nested and other.nested,
        group_policy=one.group_policy or other.group_policy,
        same_subtrees=one.same_subtrees + other.same_subtrees,
    )


def _combinable(plan: SearchPlan) -> tuple[Mask, bool]:
    """The anchors that have a candidate; and whether all were tried."""
    able = plan.lone_anchors()
    others = np.flatnonzero(plan.anchors & ~plan.view.lone)
    budget = Budget(STEPS)
    combiner = Combiner(plan, budget, repeats=True)
    for anchor in others[:MOST_TREES].tolist():
        able[anchor] = next(combiner.candidates(anchor), None) is not None or budget.exhausted
    able[others[MOST_TREES:]] = True
    return able, len(others) <= MOST_TREES and not budget.exhausted
