"""All the ways to serve a request from one tree and the providers that share with it.

The search assigns a provider to one pick after the other, the pick with the fewest choices first, and
gives up a branch as soon as a rule can no longer be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.placement.search.budget import Allowance, Budget
from moorage.placement.search.plan import Pick, SearchPlan
from moorage.placement.search.result import Candidate
from moorage.placement.search.rules import (
    Choices,
    OneProviderPerTree,
    Rule,
    SameSubtree,
    SeparateProviders,
    SharedCapacity,
    TraitsBetweenThem,
)

NamedNeeds = list[tuple[str, int]]


class Combiner:
    """Prepared once for a request, asked for each anchor.

    Sharing providers alone may serve the same at thousands of anchors; unless `repeats` is set, an
    anchor that has nothing else to offer is passed over after the first.
    """

    def __init__(self, plan: SearchPlan, budget: Budget, repeats: bool = False) -> None:
        self._plan = plan
        self._budget = budget
        self._repeats = repeats
        self._fleet = plan.view.fleet
        self._own = [pick.own.tobytes() for pick in plan.picks]
        self._foreign = [None if pick.foreign is None else pick.foreign.tobytes() for pick in plan.picks]
        self._traits = [satisfying.tobytes() for satisfying in plan.wanted_traits]
        self._contested = plan.contested
        self._only_sharers: set[tuple[tuple[int, ...], ...]] = set()
        class_name = self._fleet.names.class_name
        self._needs = [
            (pick.suffix, [(class_name(number), amount) for number, amount in pick.needs.items()])
            for pick in plan.picks
        ]

    def candidates(self, anchor: int) -> Iterator[Candidate]:
        """Every candidate anchored here, found as it is asked for."""
        options = self._options(anchor)
        if not all(options) or (not self._repeats and self._is_repeat(options)):
            return iter(())
        order = sorted(range(len(options)), key=lambda number: len(options[number]))
        choices = [options[number] for number in order]
        rules = self._rules([self._plan.picks[number] for number in order], choices)
        if not all(rule.satisfiable() for rule in rules):
            return iter(())
        needs = [self._needs[number] for number in order]
        if not rules and len(choices[-1]) == 1:
            return iter([_candidate(needs, [slots[0] for slots in choices])])
        return _Assignment(choices, needs, rules, self._budget.allowance()).complete()

    def _options(self, anchor: int) -> list[list[int]]:
        """By pick: the slots of the providers that would do."""
        view = self._plan.view
        members = view.members(anchor)
        sharers = view.sharers_near(anchor) if view.sharers else ()
        slots = view.slots
        options = []
        for own, foreign in zip(self._own, self._foreign, strict=True):
            found = [slots[place] for place in members if own[place]]
            if sharers and foreign is not None:
                found.extend([slots[place] for place in sharers if foreign[place]])
            options.append(found)
        return options

    def _is_repeat(self, options: list[list[int]]) -> bool:
        """Whether only sharing providers would serve here, and the same ones did so at another anchor."""
        sharers = self._plan.view.topology.sharer_set
        if not sharers or not all(sharers.issuperset(slots) for slots in options):
            return False
        key = tuple(tuple(sorted(slots)) for slots in options)
        if key in self._only_sharers:
            return True
        self._only_sharers.add(key)
        return False

    def _rules(self, picks: Sequence[Pick], choices: Choices) -> list[Rule]:
        """The rules that this request can break."""
        plan, fleet = self._plan, self._fleet
        rules: list[Rule] = []
        if plan.isolated > 1:
            rules.append(SeparateProviders(picks, choices))
        if not plan.request.nested and fleet.has_trees:
            rules.append(OneProviderPerTree(fleet, picks))
        if self._contested:
            rules.append(SharedCapacity(fleet, picks, choices, self._contested))
        if self._traits:
            satisfied = self._satisfied(picks, choices)
            rules.append(TraitsBetweenThem(picks, choices, satisfied, len(self._traits)))
        for suffixes in plan.request.same_subtrees:
            rules.append(SameSubtree(fleet, suffixes, picks, choices))
        return rules

    def _satisfied(self, picks: Sequence[Pick], choices: Choices) -> dict[int, int]:
        """By slot: one bit for each wanted trait set that the provider satisfies."""
        position_of = self._plan.view.position_of
        slots: set[int] = set()
        for pick, found in zip(picks, choices, strict=True):
            if not pick.granular:
                slots.update(found)
        return {
            slot: sum(has[position_of(slot)] << number for number, has in enumerate(self._traits))
            for slot in slots
        }


class _Assignment:
    """One tree's search: the providers chosen so far, in the order of the picks."""

    def __init__(
        self,
        choices: Choices,
        needs: Sequence[tuple[str, NamedNeeds]],
        rules: Sequence[Rule],
        allowance: Allowance,
    ) -> None:
        self._choices = choices
        self._needs = needs
        self._rules = rules
        self._allowance = allowance
        self._chosen: list[int] = []

    def complete(self) -> Iterator[Candidate]:
        """Extend the choices made so far in every way that the rules allow."""
        depth = len(self._chosen)
        if depth == len(self._choices):
            self._allowance.earn()
            yield _candidate(self._needs, self._chosen)
            return
        slots = self._choices[depth]
        if not self._allowance.spend(len(slots)):
            return
        for rule in self._rules:
            slots = rule.narrow(self._chosen, slots)
        for slot in slots:
            self._chosen.append(slot)
            yield from self.complete()
            self._chosen.pop()


def _candidate(needs: Sequence[tuple[str, NamedNeeds]], chosen: Sequence[int]) -> Candidate:
    allocations: dict[int, dict[str, int]] = {}
    mappings: dict[str, list[int]] = {}
    for (suffix, amounts), slot in zip(needs, chosen, strict=True):
        providers = mappings.setdefault(suffix, [])
        if slot not in providers:
            providers.append(slot)
        if amounts:
            resources = allocations.setdefault(slot, {})
            for name, amount in amounts:
                resources[name] = resources.get(name, 0) + amount
    return Candidate(allocations, mappings)
