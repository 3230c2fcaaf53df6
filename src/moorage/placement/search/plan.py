"""From names to masks: which providers could serve which part of a request, and in which trees.

A plan holds everything that vector operations can tell. What is left for the search is to combine
the providers of one tree, which the plan makes unnecessary for providers that stand alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.names import Names
from moorage.placement.fleet.slotset import Mask
from moorage.placement.fleet.view import TreesView, View, WholeView
from moorage.placement.search.request import GroupPolicy, RequestGroup, SearchRequest

NARROW_LIMIT = 1000
"""Up to this many trees are looked at one by one rather than with the rest of the fleet."""


@dataclass(slots=True)
class Pick:
    """One choice of a provider that a candidate makes.

    A granular group is one pick; the unsuffixed group is one for each of its resource classes.
    """

    suffix: str
    needs: Mapping[int, int]
    """Amounts by class id; none for a group without resources."""
    own: Mask
    """Providers that will do for candidates anchored at their own tree."""
    foreign: Mask | None
    """Sharing providers that will do for other trees; None if they are out of the question."""

    @property
    def granular(self) -> bool:
        return self.suffix != ""


@dataclass(slots=True)
class SearchPlan:
    """The picks of a request, and the anchors where each of them has a provider at least."""

    view: View
    request: SearchRequest
    picks: list[Pick] = field(default_factory=list)
    anchors: Mask = field(default_factory=lambda: np.zeros(0, np.bool_))
    wanted_traits: list[Mask] = field(default_factory=list)
    """Who satisfies each trait set that the providers of the unsuffixed group must have between them."""

    @property
    def amounts(self) -> dict[int, int]:
        """All that is asked for, by class id."""
        amounts: dict[int, int] = {}
        for pick in self.picks:
            for class_id, amount in pick.needs.items():
                amounts[class_id] = amounts.get(class_id, 0) + amount
        return amounts

    @property
    def contested(self) -> set[int]:
        """The classes that several picks ask for, whose amounts may meet at one provider."""
        asked = [class_id for pick in self.picks for class_id in pick.needs]
        return {class_id for class_id in asked if asked.count(class_id) > 1}

    @property
    def isolated(self) -> int:
        """How many picks must go to providers of their own."""
        if self.request.group_policy is not GroupPolicy.ISOLATE:
            return 0
        return sum(pick.granular for pick in self.picks)

    def lone_anchors(self) -> Mask:
        """The anchors that stand alone and can take the whole request, so need no further search."""
        if self.isolated > 1:
            return np.zeros(self.view.size, np.bool_)
        able = self.anchors & self.view.lone
        amounts = self.amounts
        for class_id in self.contested:
            rows = self.view.rows(class_id)
            able &= self.view.where(rows.where[rows.takes_in_total(amounts[class_id])])
        return able


def make_plan(fleet: Fleet, request: SearchRequest) -> SearchPlan:
    """The plan for a request.

    Names are looked up first and for all groups, so a request with an unknown name is told so
    whatever the rest of it would have found.
    """
    check_names(fleet.names, request)
    return plan_on(view_for(fleet, request), request)


def plan_on(view: View, request: SearchRequest) -> SearchPlan:
    """The plan for a request whose names exist, within a view."""
    plan = SearchPlan(view, request, anchors=view.anchors & anchor_filter(view, request))
    for group in request.groups:
        if group.granular:
            _plan_granular(plan, group)
        else:
            _plan_unsuffixed(plan, group)
    return plan


def check_names(names: Names, request: SearchRequest) -> None:
    """Raise for the first resource class or trait that does not exist."""
    for group in request.groups:
        for name in group.resources:
            names.class_id(name)
        for trait in group.forbidden_traits.union(*group.required_traits):
            names.trait_id(trait)
    for trait in request.root_required | request.root_forbidden:
        names.trait_id(trait)


def view_for(fleet: Fleet, request: SearchRequest) -> View:
    """The smallest view that holds every answer: nothing, if a group asks for a tree that is not there."""
    scope: set[int] | None = None
    for group in request.groups:
        if group.in_tree is None:
            continue
        slot = fleet.slot_of_uuid(group.in_tree)
        if slot is None:
            return TreesView(fleet, ())
        if group.resources:
            anchors = _anchors_of_tree(fleet, fleet.root_of(slot), group)
            scope = anchors if scope is None else scope & anchors
    if scope is None or len(scope) > NARROW_LIMIT:
        return WholeView(fleet)
    return TreesView(fleet, sorted(scope))


def _anchors_of_tree(fleet: Fleet, root: int, group: RequestGroup) -> set[int]:
    anchors = {root}
    if group.granular:
        for slot in fleet.topology.sharer_set.intersection(fleet.tree(root)):
            anchors.update(fleet.topology.reach(slot).tolist())
    return anchors


def anchor_filter(view: View, request: SearchRequest) -> Mask:
    """The positions that have the traits which the request demands of a root."""
    names = view.fleet.names
    able = np.ones(view.size, np.bool_)
    for trait in request.root_required:
        able &= view.having_any_trait([names.trait_id(trait)])
    if request.root_forbidden:
        able &= ~view.having_any_trait(names.trait_id(trait) for trait in request.root_forbidden)
    return able


def fitting(view: View, class_id: int, amount: int) -> Mask:
    """The providers that can give this amount of one class."""
    rows = view.rows(class_id)
    return rows.by_position(rows.fits(amount), view.size)


def in_tree(view: View, uuid: str) -> Mask:
    """The providers of the tree that the provider with this UUID is in."""
    slot = view.fleet.slot_of_uuid(uuid)
    if slot is None:
        return np.zeros(view.size, np.bool_)
    return np.equal(view.root, view.position_of(view.fleet.root_of(slot)))


def trait_sets(view: View, group: RequestGroup) -> list[Mask]:
    """Who satisfies each of the group's required trait sets."""
    trait_id = view.fleet.names.trait_id
    return [view.having_any_trait(trait_id(trait) for trait in traits) for traits in group.required_traits]


def with_forbidden_trait(view: View, group: RequestGroup) -> Mask:
    return view.having_any_trait(view.fleet.names.trait_id(trait) for trait in group.forbidden_traits)


def in_aggregates(view: View, group: RequestGroup) -> Mask:
    """Who is itself in all the aggregates that the group asks for."""
    mask = np.ones(view.size, np.bool_)
    for aggregates in group.member_of:
        mask &= view.in_any_aggregate(aggregates)
    return mask


def meeting(view: View, group: RequestGroup) -> Mask:
    """Who meets every condition of a group by itself."""
    mask = in_aggregates(view, group)
    for name, amount in group.resources.items():
        mask &= fitting(view, view.fleet.names.class_id(name), amount)
    if group.in_tree is not None:
        mask &= in_tree(view, group.in_tree)
    for satisfying in trait_sets(view, group):
        mask &= satisfying
    if group.forbidden_traits:
        mask &= ~with_forbidden_trait(view, group)
    if group.forbidden_aggregates:
        mask &= ~view.in_any_aggregate(group.forbidden_aggregates)
    return mask


def serving_granular(view: View, group: RequestGroup) -> Mask:
    """Who can serve a granular group.

    A group without resources has peculiar rules in the API: its tree must exist but is then ignored,
    and unless the group asks for traits or aggregates, nobody serves it.
    """
    if group.resources:
        return meeting(view, group)
    lost = group.in_tree is not None and view.fleet.slot_of_uuid(group.in_tree) is None
    if lost or not (group.required_traits or group.member_of):
        return np.zeros(view.size, np.bool_)
    return meeting(view, replace(group, in_tree=None))


def anchors_for(view: View, own: Mask, foreign: Mask | None) -> Mask:
    """The roots at which these providers, or the sharing ones among them, can serve."""
    anchors = view.roots_of(own)
    sharing = () if foreign is None else np.flatnonzero(foreign).tolist()
    if sharing:
        anchors = anchors.copy()
        for sharer in sharing:
            anchors[view.reach(sharer)] = True
    return anchors


def _plan_granular(plan: SearchPlan, group: RequestGroup) -> None:
    view = plan.view
    able = serving_granular(view, group)
    foreign = able & view.sharer_mask if view.sharers else None
    class_id = view.fleet.names.class_id
    needs = {class_id(name): amount for name, amount in group.resources.items()}
    plan.picks.append(Pick(group.suffix, needs, able, foreign))
    plan.anchors &= anchors_for(view, able, foreign)


def _plan_unsuffixed(plan: SearchPlan, group: RequestGroup) -> None:
    """An aggregate of the root counts for its whole tree; a sharing provider must be in it itself."""
    view = plan.view
    own = np.ones(view.size, np.bool_)
    foreign = view.sharer_mask.copy() if view.sharers and group.in_tree is None else None
    if group.in_tree is not None:
        own &= in_tree(view, group.in_tree)
    if group.forbidden_traits:
        own &= ~with_forbidden_trait(view, group)
    if group.forbidden_aggregates:
        barred = view.in_any_aggregate(group.forbidden_aggregates)
        own &= ~barred
        plan.anchors &= ~barred
    if foreign is not None:
        foreign &= own
    if group.member_of:
        members = in_aggregates(view, group)
        own &= members | members[view.root]
        if foreign is not None:
            foreign &= members
    picks = []
    for name, amount in group.resources.items():
        class_id = view.fleet.names.class_id(name)
        fit = fitting(view, class_id, amount)
        shared = None if foreign is None else foreign & fit
        picks.append(Pick("", {class_id: amount}, own & fit, shared))
        plan.anchors &= anchors_for(view, picks[-1].own, shared)
    plan.picks.extend(picks)
    _want_traits(plan, group, picks)


def _want_traits(plan: SearchPlan, group: RequestGroup, picks: list[Pick]) -> None:
    """The picks must have the required traits between them: here, only that some pick could."""
    plan.wanted_traits = trait_sets(plan.view, group)
    for wanted in plan.wanted_traits:
        able = np.zeros(plan.view.size, np.bool_)
        for pick in picks:
            foreign = None if pick.foreign is None else pick.foreign & wanted
            able |= anchors_for(plan.view, pick.own & wanted, foreign)
        plan.anchors &= able
