"""The trees that came closest to serving a request, and by how much they missed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from moorage.placement.fleet.slotset import Mask
from moorage.placement.fleet.view import View
from moorage.placement.search.checks import Check, ConditionKind
from moorage.placement.search.combinations import CombinationOutcome
from moorage.placement.search.order import utilisation
from moorage.placement.search.plan import SearchPlan


class Shortfall(msgspec.Struct, frozen=True):
    """The numbers of a failed resource condition, at the provider of the tree that comes nearest."""

    provider: str
    needs: int
    free: int
    capacity: int
    min_unit: int
    max_unit: int
    step_size: int


class Failure(msgspec.Struct, frozen=True):
    """One condition that a tree does not meet."""

    kind: ConditionKind
    group: str | None
    subject: str
    shortfall: Shortfall | None = None

    def __str__(self) -> str:
        """A sentence for people; programs read the fields."""
        where = f"group {self.group}: " if self.group else ""
        name = self.subject.partition(":")[0]
        short = self.shortfall
        if short is None:
            return where + _SENTENCES[self.kind].format(subject=self.subject, name=name)
        if self.kind is ConditionKind.ROOM:
            return f"{where}{name}: needs {short.needs}, free {short.free} of {short.capacity}"
        limit = {
            ConditionKind.MIN_UNIT: f"min_unit is {short.min_unit}",
            ConditionKind.MAX_UNIT: f"max_unit is {short.max_unit}",
            ConditionKind.STEP_SIZE: f"step_size is {short.step_size}",
        }
        return f"{where}{name}: needs {short.needs}, {limit[self.kind]}"


class NearMiss(msgspec.Struct, frozen=True):
    """A tree that cannot serve the request, by its root, and every condition that it fails."""

    uuid: str
    name: str
    failures: list[Failure]


_SENTENCES = {
    ConditionKind.ROOT_REQUIRED: "the root lacks {subject}",
    ConditionKind.ROOT_FORBIDDEN: "the root has {subject}",
    ConditionKind.IN_TREE: "not the tree of {subject}",
    ConditionKind.INVENTORY: "no inventory of {name}",
    ConditionKind.REQUIRED_TRAITS: "lacks {subject}",
    ConditionKind.FORBIDDEN_TRAITS: "has {subject}",
    ConditionKind.MEMBER_OF: "not in aggregate {subject}",
    ConditionKind.FORBIDDEN_AGGREGATES: "in aggregate {subject}",
    ConditionKind.NOTHING_ASKED: "the group asks for nothing",
    ConditionKind.TOGETHER: (
        "every condition is met by some provider, but no choice of providers meets them all"
    ),
    ConditionKind.ONE_PROVIDER_PER_TREE: (
        "needs several providers of one tree, which this microversion does not show"
    ),
    ConditionKind.GROUP_POLICY: "too few providers to give each group one of its own",
    ConditionKind.SAME_SUBTREE: "the providers for {subject} are not in one subtree",
}


def nearest_misses(
    plan: SearchPlan, checks: list[Check], able: list[Mask], combined: list[CombinationOutcome], count: int
) -> list[NearMiss]:
    """The trees that fail the fewest conditions, the emptiest first among equals.

    Where one tree is asked for, it is the nearest however much it fails: no other one will ever do.
    """
    view = plan.view
    failed = np.zeros(view.size, np.int64)
    for check, trees in zip(checks, able, strict=True):
        failed += ~trees * (len(checks) if check.kind is ConditionKind.IN_TREE else 1)
    left = combined[-1].in_order if combined else plan.anchors
    missing = np.flatnonzero(view.anchors & ~left)
    fullness = utilisation(view, plan.amounts)
    nearest = missing[np.lexsort((fullness[missing], failed[missing]))][:count]
    misses = []
    for anchor in nearest.tolist():
        failures = list(_failures(view, checks, able, anchor)) or [_combined_failure(combined, anchor)]
        slot = view.slots[anchor]
        misses.append(NearMiss(view.fleet.uuids[slot], view.fleet.provider_names[slot], failures))
    return misses


def _combined_failure(combined: list[CombinationOutcome], anchor: int) -> Failure:
    """For a tree that meets every condition on single providers: the first that it fails between them."""
    for outcome in combined:
        if not outcome.in_order[anchor]:
            return Failure(outcome.kind, None, outcome.subject)
    return Failure(ConditionKind.TOGETHER, None, "")


def _failures(view: View, checks: list[Check], able: list[Mask], anchor: int) -> Iterator[Failure]:
    """A class that the tree has no inventory of is told once, without its numbers."""
    absent = set()
    for check, trees in zip(checks, able, strict=True):
        if trees[anchor] or (check.suffix, check.class_id) in absent:
            continue
        shortfall = None
        if check.kind is ConditionKind.INVENTORY:
            absent.add((check.suffix, check.class_id))
        elif check.class_id is not None:
            shortfall = _shortfall(view, check, check.class_id, anchor)
        yield Failure(check.kind, check.suffix, check.subject, shortfall)


def _shortfall(view: View, check: Check, class_id: int, anchor: int) -> Shortfall:
    """The numbers of the provider with the most room, among those that serve this tree."""
    rows = view.rows(class_id)
    serving = [*view.members(anchor), *view.sharers_near(anchor)]
    held = np.flatnonzero(np.isin(rows.where, serving))
    free = rows.capacity[held] - rows.used[held]
    row = int(held[np.argmax(free)])
    return Shortfall(
        provider=view.fleet.uuids[view.slots[int(rows.where[row])]],
        needs=check.amount,
        free=int(rows.capacity[row] - rows.used[row]),
        capacity=int(rows.capacity[row]),
        min_unit=int(rows.min_unit[row]),
        max_unit=int(rows.max_unit[row]),
        step_size=int(rows.step_size[row]),
    )
