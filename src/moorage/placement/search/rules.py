"""The rules that hold between the providers of one candidate.

Each rule sees the providers chosen so far, in the order of the picks, and says whether one more may
join them. A rule may allow a choice that turns out bad later, but never the other way round; once all
picks are made, what every rule allowed at every step keeps all rules.
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
    def allows(self, chosen: Sequence[int], slot: int) -> bool:
        """Whether the next pick, the one with number len(chosen), may go to this slot."""


class SeparateProviders(Rule):
    """group_policy=isolate: no provider serves two granular groups."""

    def __init__(self, picks: Sequence[Pick], choices: Choices) -> None:
        self._granular = [pick.granular for pick in picks]
        self._choices = choices

    def satisfiable(self) -> bool:
        places = {
            slot
            for granular, slots in zip(self._granular, self._choices, strict=True)
            if granular
            for slot in slots
        }
        return len(places) >= sum(self._granular)

    def allows(self, chosen: Sequence[int], slot: int) -> bool:
        if slot not in chosen or not self._granular[len(chosen)]:
            return True
        return not any(
            taken == slot and granular for taken, granular in zip(chosen, self._granular, strict=False)
        )


class OneProviderPerTree(Rule):
    """Below microversion 1.29 a client knows no trees: it sees at most one provider of each."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def allows(self, chosen: Sequence[int], slot: int) -> bool:
        root = self._fleet.root_of(slot)
        return all(taken == slot or self._fleet.root_of(taken) != root for taken in chosen)


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

    def allows(self, chosen: Sequence[int], slot: int) -> bool:
        if slot not in chosen:
            return True
        for class_id, amount in self._needs[len(chosen)].items():
            taken = sum(
                needs.get(class_id, 0)
                for place, needs in zip(chosen, self._needs, strict=False)
                if place == slot
            )
            if taken + amount > self._room[class_id][slot]:
                return False
        return True


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

    def allows(self, chosen: Sequence[int], slot: int) -> bool:
        depth = len(chosen)
        if not self._counts[depth]:
            return True
        bits = self._satisfied[slot] | self._later[depth + 1]
        for place, counts in zip(chosen, self._counts, strict=False):
            if counts:
                bits |= self._satisfied[place]
        return bits == self._all


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

    def allows(self, chosen: Sequence[int], slot: int) -> bool:
        depth = len(chosen)
        if not self._named[depth]:
            return True
        together = {place for place, named in zip(chosen, self._named, strict=False) if named}
        together.add(slot)
        common = frozenset.intersection(*(self._line(place) for place in together))
        return not common.isdisjoint(together) or not common.isdisjoint(self._later[depth + 1])

    def _line(self, slot: int) -> frozenset[int]:
        """The slot with its ancestors."""
        line = self._lines.get(slot)
        if line is None:
            ancestors = [slot]
            while (parent := self._fleet.parent_of(ancestors[-1])) is not None:
                ancestors.append(parent)
            line = self._lines[slot] = frozenset(ancestors)
        return line
