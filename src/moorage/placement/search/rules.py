"""The rules that hold between the providers of one candidate.

Each rule sees the providers chosen so far, in the order of the picks, and says which ones may be next. A
rule may let a choice pass that turns out bad later, but never the other way round; once all picks are
made, what every rule let pass at every step keeps all rules.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

from moorage.placement.fleet.fleet import Fleet
from moorage.placement.search.plan import Pick

Choices = Sequence[Sequence[int]]
"""By pick: the slots to choose from."""


class Rule(ABC):
    """One condition on the combination."""

    def satisfiable(self) -> bool:
        """A quick look at all choices together; False saves a search that cannot succeed."""
        return True

    @abstractmethod
    def narrow(self, chosen: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        """Which of these slots the next pick, the one with number len(chosen), may go to."""


class SeparateProviders(Rule):
    """group_policy=isolate: no provider serves two granular groups."""

    def __init__(self, picks: Sequence[Pick], choices: Choices) -> None:
        self._granular = [pick.granular for pick in picks]
        self._choices = choices

    def satisfiable(self) -> bool:
        places: set[int] = set()
        for granular, slots in zip(self._granular, self._choices, strict=True):
            if granular:
                places.update(slots)
        return len(places) >= sum(self._granular)

    def narrow(self, chosen: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        if not self._granular[len(chosen)]:
            return slots
        taken = {slot for slot, granular in zip(chosen, self._granular, strict=False) if granular}
        return [slot for slot in slots if slot not in taken]


class OneProviderPerTree(Rule):
    """Below microversion 1.29 a client knows no trees: it gets resources of one provider of each."""

    def __init__(self, fleet: Fleet, picks: Sequence[Pick]) -> None:
        self._root_of = fleet.root_of
        self._counts = [bool(pick.needs) for pick in picks]

    def narrow(self, chosen: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        if not self._counts[len(chosen)]:
            return slots
        taken = {
            self._root_of(slot): slot for slot, counts in zip(chosen, self._counts, strict=False) if counts
        }
        return [slot for slot in slots if taken.get(self._root_of(slot), slot) == slot]


class SharedCapacity(Rule):
    """Amounts of one class that meet at one provider must fit there together."""

    def __init__(
        self, fleet: Fleet, picks: Sequence[Pick], choices: Choices, contested: Collection[int]
    ) -> None:
        self._needs = [
            {class_id: amount for class_id, amount in pick.needs.items() if class_id in contested}
            for pick in picks
        ]
        self._room: dict[int, dict[int, int]] = {class_id: {} for class_id in contested}
        for needs, slots in zip(self._needs, choices, strict=True):
            for class_id in needs:
                column, room = fleet.columns[class_id], self._room[class_id]
                for slot in slots:
                    if slot not in room:
                        room[slot] = column.room(fleet.rows_of[slot][class_id])

    def satisfiable(self) -> bool:
        """Whether all of it fits somewhere, and so do that many pieces of the smallest size."""
        for class_id, room in self._room.items():
            pieces = [needs[class_id] for needs in self._needs if class_id in needs]
            smallest = min(pieces)
            if sum(room.values()) < sum(pieces) or sum(n // smallest for n in room.values()) < len(pieces):
                return False
        return True

    def narrow(self, chosen: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        needs = self._needs[len(chosen)]
        if not needs:
            return slots
        return [slot for slot in slots if slot not in chosen or self._has_room(chosen, slot, needs)]

    def _has_room(self, chosen: Sequence[int], slot: int, needs: Mapping[int, int]) -> bool:
        meeting = [held for place, held in zip(chosen, self._needs, strict=False) if place == slot]
        return all(
            sum(held.get(class_id, 0) for held in meeting) + amount <= self._room[class_id][slot]
            for class_id, amount in needs.items()
        )


class TraitsBetweenThem(Rule):
    """The providers of the unsuffixed group must satisfy the required trait sets between them."""

    def __init__(
        self, picks: Sequence[Pick], choices: Choices, satisfied: Mapping[int, int], sets: int
    ) -> None:
        self._counts = [not pick.granular for pick in picks]
        self._satisfied = satisfied
        """By slot: one bit for each trait set that the provider satisfies."""
        self._all = (1 << sets) - 1
        self._later = [0]
        """By number of picks made: the sets that picks still to be made may satisfy."""
        for counts, slots in zip(reversed(self._counts), reversed(choices), strict=True):
            bits = self._later[0]
            if counts:
                for slot in slots:
                    bits |= satisfied[slot]
            self._later.insert(0, bits)

    def satisfiable(self) -> bool:
        return self._later[0] == self._all

    def narrow(self, chosen: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        depth = len(chosen)
        if not self._counts[depth]:
            return slots
        bits = self._later[depth + 1]
        for place, counts in zip(chosen, self._counts, strict=False):
            if counts:
                bits |= self._satisfied[place]
        return [slot for slot in slots if bits | self._satisfied[slot] == self._all]


class SameSubtree(Rule):
    """Of the providers of the named groups, one is an ancestor of (or is) all the others."""

    def __init__(
        self, fleet: Fleet, suffixes: Collection[str], picks: Sequence[Pick], choices: Choices
    ) -> None:
        self._fleet = fleet
        self._named = [pick.suffix in suffixes for pick in picks]
        self._later: list[set[int]] = [set()]
        """By number of picks made: the providers that picks still to be made may bring in."""
        for named, slots in zip(reversed(self._named), reversed(choices), strict=True):
            self._later.insert(0, self._later[0].union(slots) if named else self._later[0])
        self._lines: dict[int, frozenset[int]] = {}

    def narrow(self, chosen: Sequence[int], slots: Sequence[int]) -> Sequence[int]:
        depth = len(chosen)
        if not self._named[depth]:
            return slots
        together = {place for place, named in zip(chosen, self._named, strict=False) if named}
        tops = together | self._later[depth + 1]
        lines = [self._line(place) for place in together]
        return [slot for slot in slots if self._have_top(slot, lines, tops)]

    def _have_top(self, slot: int, lines: Sequence[frozenset[int]], tops: set[int]) -> bool:
        common = self._line(slot).intersection(*lines)
        return slot in common or not common.isdisjoint(tops)

    def _line(self, slot: int) -> frozenset[int]:
        """The slot with its ancestors."""
        line = self._lines.get(slot)
        if line is None:
            ancestors = [slot]
            while (parent := self._fleet.parent_of(ancestors[-1])) is not None:
                ancestors.append(parent)
            line = self._lines[slot] = frozenset(ancestors)
        return line
