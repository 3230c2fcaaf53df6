"""The conditions of a request, one by one, so that each can be counted and named.

The plan folds all conditions into a few masks because that is fast; here they stay apart. Both use the
same masks, and what passes every check of a group is what the plan found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from moorage.placement.fleet.slotset import Mask
from moorage.placement.fleet.view import View
from moorage.placement.search.plan import anchors_for, in_aggregates, in_tree, with_forbidden_trait
from moorage.placement.search.request import RequestGroup, SearchRequest


class ConditionKind(StrEnum):
    """What sort of condition it is; the names are part of the answer that operators read."""

    ROOT_REQUIRED = "root_required"
    ROOT_FORBIDDEN = "root_forbidden"
    IN_TREE = "in_tree"
    INVENTORY = "inventory"
    ROOM = "room"
    MIN_UNIT = "min_unit"
    MAX_UNIT = "max_unit"
    STEP_SIZE = "step_size"
    REQUIRED_TRAITS = "required_traits"
    FORBIDDEN_TRAITS = "forbidden_traits"
    MEMBER_OF = "member_of"
    FORBIDDEN_AGGREGATES = "forbidden_aggregates"
    NOTHING_ASKED = "nothing_asked"
    TOGETHER = "together"
    ONE_PROVIDER_PER_TREE = "one_provider_per_tree"
    GROUP_POLICY = "group_policy"
    SAME_SUBTREE = "same_subtree"


@dataclass(slots=True)
class Check:
    """One condition, and who satisfies it."""

    kind: ConditionKind
    suffix: str | None
    """The group that it belongs to; None for the whole request."""
    subject: str
    """What is asked for, in the words of the request."""
    own: Mask
    foreign: Mask | None = None
    """As `own`, for sharing providers that serve another tree, where the two differ."""
    barred: Mask | None = None
    """Anchors at which nothing can satisfy the condition."""
    class_id: int | None = None
    """The one resource class that the condition is about."""
    amount: int = 0
    collective: bool = False
    """True if the providers of a tree may satisfy it between them, so that it rules out trees only."""

    def trees(self, view: View) -> Mask:
        """The anchors where somebody satisfies the condition."""
        foreign = self.own if self.foreign is None else self.foreign
        found = view.anchors & anchors_for(view, self.own & (view.root >= 0), foreign & view.sharer_mask)
        return found if self.barred is None else found & ~self.barred


def checks_of(view: View, request: SearchRequest) -> list[Check]:
    """All conditions on single providers: where they may be, then what they must have and be."""
    return [
        *_root_checks(view, request),
        *(c for group in request.groups for c in _group_checks(view, group)),
    ]


def _root_checks(view: View, request: SearchRequest) -> Iterator[Check]:
    trait_id = view.fleet.names.trait_id
    for trait in sorted(request.root_required):
        having = view.having_any_trait([trait_id(trait)])
        yield Check(ConditionKind.ROOT_REQUIRED, None, trait, having[view.root], barred=~having)
    for trait in sorted(request.root_forbidden):
        having = view.having_any_trait([trait_id(trait)])
        yield Check(ConditionKind.ROOT_FORBIDDEN, None, trait, ~having[view.root], barred=having)


def _group_checks(view: View, group: RequestGroup) -> Iterator[Check]:
    if group.in_tree is not None:
        yield _tree_check(view, group, group.in_tree)
    yield from _aggregate_checks(view, group)
    for name, amount in group.resources.items():
        yield from _resource_checks(view, group, name, amount)
    yield from _trait_checks(view, group)
    if not (group.resources or group.required_traits or group.member_of):
        yield Check(ConditionKind.NOTHING_ASKED, group.suffix, "", np.zeros(view.size, np.bool_))


def _tree_check(view: View, group: RequestGroup, uuid: str) -> Check:
    inside = in_tree(view, uuid)
    if not group.resources and view.fleet.slot_of_uuid(uuid) is not None:
        inside = np.ones(view.size, np.bool_)
    foreign = inside if group.granular else np.zeros(view.size, np.bool_)
    return Check(ConditionKind.IN_TREE, group.suffix, uuid, inside, foreign)


def _resource_checks(view: View, group: RequestGroup, name: str, amount: int) -> Iterator[Check]:
    class_id = view.fleet.names.class_id(name)
    rows = view.rows(class_id)
    outcomes = {
        ConditionKind.INVENTORY: np.ones(len(rows.where), np.bool_),
        ConditionKind.ROOM: rows.has_room(amount),
        ConditionKind.MIN_UNIT: rows.min_unit <= amount,
        ConditionKind.MAX_UNIT: rows.max_unit >= amount,
        ConditionKind.STEP_SIZE: amount % rows.step_size == 0,
    }
    for kind, passed in outcomes.items():
        if kind in (ConditionKind.MIN_UNIT, ConditionKind.STEP_SIZE) and passed.all():
            continue  # nearly always 1, and not worth a line then
        able = view.where(rows.where[passed])
        yield Check(kind, group.suffix, f"{name}:{amount}", able, class_id=class_id, amount=amount)


def _trait_checks(view: View, group: RequestGroup) -> Iterator[Check]:
    trait_id = view.fleet.names.trait_id
    collective = not group.granular and len(group.resources) > 1
    for traits in group.required_traits:
        having = view.having_any_trait(trait_id(trait) for trait in traits)
        subject = " or ".join(sorted(traits))
        yield Check(ConditionKind.REQUIRED_TRAITS, group.suffix, subject, having, collective=collective)
    if group.forbidden_traits:
        subject = " or ".join(sorted(group.forbidden_traits))
        yield Check(ConditionKind.FORBIDDEN_TRAITS, group.suffix, subject, ~with_forbidden_trait(view, group))


def _aggregate_checks(view: View, group: RequestGroup) -> Iterator[Check]:
    if group.member_of:
        members = in_aggregates(view, group)
        spanning = members if group.granular else members | members[view.root]
        subject = " and ".join(" or ".join(sorted(uuids)) for uuids in group.member_of)
        yield Check(ConditionKind.MEMBER_OF, group.suffix, subject, spanning, foreign=members)
    if group.forbidden_aggregates:
        outside = ~view.in_any_aggregate(group.forbidden_aggregates)
        subject = " or ".join(sorted(group.forbidden_aggregates))
        barred = None if group.granular else ~outside
        yield Check(ConditionKind.FORBIDDEN_AGGREGATES, group.suffix, subject, outside, barred=barred)
