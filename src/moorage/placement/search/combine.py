"""All the ways to serve a request from one tree and the providers that share with it.

The search assigns a provider to one pick after the other, the pick with the fewest choices first, and
gives up a branch as soon as a rule can no longer be kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.search.budget import Allowance, Budget
from moorage.placement.search.plan import Pick, Plan
from moorage.placement.search.result import Candidate
from moorage.placement.search.rules import (
    OneProviderPerTree,
    Rule,
    SameSubtree,
    SeparateProviders,
    SharedCapacity,
    TraitsBetweenThem,
)


class Combiner:
    """Prepared once for a request, asked for each anchor."""

    def __init__(self, plan: Plan, budget: Budget) -> None:
        self._plan = plan
        self._budget = budget
        self._fleet = plan.view.fleet
        self._own = [pick.own.tobytes() for pick in plan.picks]
        self._foreign = [None if pick.foreign is None else pick.foreign.tobytes() for pick in plan.picks]
        self._traits = [satisfying.tobytes() for satisfying in plan.wanted_traits]
        self._contested = plan.contested

    def candidates(self, anchor: int) -> Iterator[Candidate]:
        """Every candidate anchored here, lazily."""
        options = self._options(anchor)
        order = sorted(range(len(options)), key=lambda number: len(options[number]))
        picks = [self._plan.picks[number] for number in order]
        choices = [options[number] for number in order]
        if not choices[0]:
            return
        rules = self._rules(picks, choices)
        if all(rule.satisfiable() for rule in rules):
            yield from _Assignment(self._fleet, picks, choices, rules, self._budget.allowance()).complete()

    def _options(self, anchor: int) -> list[list[int]]:
        """By pick: the slots of the providers that would do."""
        view = self._plan.view
        members = view.members(anchor)
        sharers = view.sharers_near(anchor) if view.sharers else ()
        slots = view.slots
        options = []
        for own, foreign in zip(self._own, self._foreign, strict=True):
            found = [slots[place] for place in members if own[place]]
            if foreign is not None:
                found.extend(slots[place] for place in sharers if foreign[place])
            options.append(found)
        return options

    def _rules(self, picks: Sequence[Pick], choices: Sequence[Sequence[int]]) -> list[Rule]:
        """The rules that this request can break, cheapest first."""
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
        rules.extend(SameSubtree(fleet, suffixes, picks, choices) for suffixes in plan.request.same_subtrees)
        return rules

    def _satisfied(self, picks: Sequence[Pick], choices: Sequence[Sequence[int]]) -> dict[int, int]:
        """By slot: one bit for each wanted trait set that the provider satisfies."""
        position_of = self._plan.view.position_of
        slots = {
            slot for pick, found in zip(picks, choices, strict=True) if not pick.granular for slot in found
        }
        return {
            slot: sum(has[position_of(slot)] << number for number, has in enumerate(self._traits))
            for slot in slots
        }


class _Assignment:
    """One tree's search: the providers chosen so far, in the order of the picks."""

    def __init__(
        self,
        fleet: Fleet,
        picks: Sequence[Pick],
        choices: Sequence[Sequence[int]],
        rules: Sequence[Rule],
        allowance: Allowance,
    ) -> None:
        self._choices = choices
        self._rules = rules
        self._allowance = allowance
        self._chosen: list[int] = []
        class_name = fleet.names.class_name
        self._needs = [
            (pick.suffix, [(class_name(number), amount) for number, amount in pick.needs.items()])
            for pick in picks
        ]

    def complete(self) -> Iterator[Candidate]:
        """Extend the choices made so far in every way that the rules allow."""
        depth = len(self._chosen)
        if depth == len(self._choices):
            self._allowance.earn()
            yield self._candidate()
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

    def _candidate(self) -> Candidate:
        allocations: dict[int, dict[str, int]] = {}
        mappings: dict[str, list[int]] = {}
        for (suffix, needs), slot in zip(self._needs, self._chosen, strict=True):
            providers = mappings.setdefault(suffix, [])
            if slot not in providers:
                providers.append(slot)
            if needs:
                resources = allocations.setdefault(slot, {})
                for name, amount in needs:
                    resources[name] = resources.get(name, 0) + amount
        return Candidate(allocations, mappings)
