"""Why a request finds nothing, or little: what each condition rules out, and who came closest."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.slotset import Mask
from moorage.placement.fleet.view import View, WholeView
from moorage.placement.search.checks import Check, ConditionKind, checks_of
from moorage.placement.search.combinations import CombinationOutcome, outcomes
from moorage.placement.search.misses import NearMiss, nearest_misses
from moorage.placement.search.plan import anchors_for, check_names, plan_on
from moorage.placement.search.request import SearchRequest


class ProviderCount(msgspec.Struct, frozen=True):
    """Providers and the trees that they form; a condition between providers counts trees only."""

    trees: int
    providers: int | None = None


class Condition(msgspec.Struct, frozen=True):
    """One condition of the request and what it does to the choice."""

    kind: ConditionKind
    group: str | None
    """The suffix of the request group; None if the condition is on the request as a whole."""
    subject: str
    excludes_alone: ProviderCount
    left: ProviderCount
    """What this condition and all before it leave."""
    exact: bool = True
    """False if there were too many trees to try them all."""


class Explanation(msgspec.Struct, frozen=True):
    """The whole story: from all providers down to those that are left, condition by condition."""

    total: ProviderCount
    conditions: list[Condition]
    excludes_most: Condition | None
    """The condition that, alone, rules out the most trees."""
    trees_left: int
    near_misses: list[NearMiss]


def explain(fleet: Fleet, request: SearchRequest, misses: int = 5) -> Explanation:
    """Count the whole fleet against each condition. Unknown names raise `UnknownNameError`."""
    check_names(fleet.names, request)
    view = WholeView(fleet)
    checks = checks_of(view, request)
    able = [check.trees(view) for check in checks]
    plan = plan_on(view, request)
    combined = outcomes(plan)
    conditions = list(_funnel(view, request, checks, able))
    conditions += _between_providers(combined, conditions[-1].left.trees if conditions else 0)
    left = combined[-1].in_order if combined else plan.anchors
    return Explanation(
        total=_everything(view),
        conditions=conditions,
        excludes_most=_excludes_most(conditions),
        trees_left=int(np.count_nonzero(left)),
        near_misses=nearest_misses(plan, checks, able, combined, misses),
    )


def _everything(view: View) -> ProviderCount:
    return ProviderCount(int(np.count_nonzero(view.anchors)), len(view.fleet))


def _funnel(view: View, request: SearchRequest, checks: list[Check], able: list[Mask]) -> Iterator[Condition]:
    """The conditions on single providers: what each excludes alone, and what is left after each."""
    alive = view.root >= 0
    parts = _Parts(view, request)
    for check, trees in zip(checks, able, strict=True):
        parts.narrow(check, trees)
        excluded = ProviderCount(
            trees=int(np.count_nonzero(view.anchors & ~trees)),
            providers=int(np.count_nonzero(alive & ~check.own)),
        )
        yield Condition(check.kind, check.suffix, check.subject, excluded, parts.left(check.suffix))


class _Parts:
    """Who is left for each part of the request, as its conditions are applied one after the other.

    A granular group is one part, since one provider serves it; the unsuffixed group has one for each
    class. A tree is left while every part has a provider there.
    """

    def __init__(self, view: View, request: SearchRequest) -> None:
        self._view = view
        self._anchors = view.anchors.copy()
        alive, sharing = view.root >= 0, view.sharer_mask
        self._parts: dict[tuple[str, int | None], tuple[Mask, Mask]] = {}
        class_id = view.fleet.names.class_id
        for group in request.groups:
            classes = [None] if group.granular else [class_id(name) for name in group.resources]
            for part in classes:
                self._parts[group.suffix, part] = (alive, sharing)
        self._served = dict.fromkeys(self._parts, self._anchors)

    def narrow(self, check: Check, trees: Mask) -> None:
        if check.suffix is None or check.barred is not None or check.collective:
            self._anchors &= trees
        if check.suffix is None or check.collective:
            return
        for (suffix, part), (own, foreign) in self._parts.items():
            if suffix == check.suffix and (part is None or check.class_id in (None, part)):
                abroad = check.own if check.foreign is None else check.foreign
                own, foreign = own & check.own, foreign & abroad
                self._parts[suffix, part] = (own, foreign)
                self._served[suffix, part] = anchors_for(self._view, own, foreign)

    def left(self, suffix: str | None) -> ProviderCount:
        """The trees left for the request, and the providers in them that are left for one group."""
        trees = self._anchors.copy()
        for served in self._served.values():
            trees &= served
        providers = np.zeros(self._view.size, np.bool_)
        for (group, _), (own, foreign) in self._parts.items():
            if suffix in (None, group):
                providers |= own | foreign
        return ProviderCount(int(np.count_nonzero(trees)), int(np.count_nonzero(providers)))


def _between_providers(combined: list[CombinationOutcome], before: int) -> Iterator[Condition]:
    """The conditions on combinations, which rule out trees; `before` is how many were left for them."""
    for outcome in combined:
        possible = int(np.count_nonzero(outcome.alone))
        left = ProviderCount(int(np.count_nonzero(outcome.in_order)))
        yield Condition(
            outcome.kind, None, outcome.subject, ProviderCount(before - possible), left, outcome.exact
        )
        if outcome.kind is ConditionKind.TOGETHER:
            before = possible


def _excludes_most(conditions: list[Condition]) -> Condition | None:
    def weight(condition: Condition) -> tuple[int, int]:
        return condition.excludes_alone.trees, condition.excludes_alone.providers or 0

    worst = max(conditions, key=weight, default=None)
    return worst if worst is not None and any(weight(worst)) else None
