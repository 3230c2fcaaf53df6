"""The part of the fleet that a search looks at: all of it, or a few trees.

A search works on positions in a view. In the view of the whole fleet a position is a slot; in the view
of a few trees positions are numbered from 0, so that a query for one tree costs the same in any fleet.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from moorage.placement.fleet.column import Column, Rows
from moorage.placement.fleet.fleet import Fleet
from moorage.placement.fleet.slotset import Mask, Slots


class View(ABC):
    """Masks and rows by position, and the trees that the positions form."""

    slots: Sequence[int]
    """By position: the slot."""
    root: Slots
    """By position: the position of the root of its tree."""
    anchors: Mask
    """The positions that candidates may be anchored at."""
    lone: Mask
    """The roots without children that no sharing provider reaches."""
    flat: bool
    """True if every provider here is a root."""
    sharers: Sequence[int]
    """The positions of the sharing providers."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.topology = fleet.topology

    @property
    def size(self) -> int:
        return len(self.slots)

    @cached_property
    def sharer_mask(self) -> Mask:
        return self.where(self.sharers)

    def where(self, positions: Sequence[int] | Slots) -> Mask:
        """The mask of these positions."""
        mask = np.zeros(self.size, np.bool_)
        mask[np.asarray(positions, np.intp)] = True
        return mask

    def roots_of(self, providers: Mask) -> Mask:
        """The roots of the trees that these providers are in."""
        return providers if self.flat else self.where(self.root[np.flatnonzero(providers)])

    def having_any_trait(self, trait_ids: Iterable[int]) -> Mask:
        mask = np.zeros(self.size, np.bool_)
        for trait_id in trait_ids:
            mask |= self._having_trait(trait_id)
        return mask

    def in_any_aggregate(self, aggregates: Iterable[str]) -> Mask:
        mask = np.zeros(self.size, np.bool_)
        for aggregate in aggregates:
            mask |= self._in_aggregate(aggregate)
        return mask

    @abstractmethod
    def position_of(self, slot: int) -> int:
        """The position of a slot; -1 if the view leaves it out."""

    @abstractmethod
    def rows(self, class_id: int) -> Rows:
        """The inventories of one class, by position."""

    @abstractmethod
    def members(self, anchor: int) -> Sequence[int]:
        """The positions of the tree at an anchor."""

    @abstractmethod
    def reach(self, sharer: int) -> Slots:
        """The anchors that a sharing provider reaches."""

    @abstractmethod
    def sharers_near(self, anchor: int) -> list[int]:
        """The sharing providers of other trees that reach an anchor."""

    @abstractmethod
    def _having_trait(self, trait_id: int) -> Mask: ...

    @abstractmethod
    def _in_aggregate(self, aggregate: str) -> Mask: ...


class WholeView(View):
    """All providers; positions are slots."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__(fleet)
        self.slots = range(fleet.size)
        self.root = fleet.root[: fleet.size]
        self.anchors = self.topology.roots
        self.lone = self.topology.lone
        self.flat = not fleet.has_trees
        self.sharers = self.topology.sharers

    def position_of(self, slot: int) -> int:
        return slot

    def rows(self, class_id: int) -> Rows:
        column = self.fleet.columns.get(class_id)
        return Column().rows() if column is None else column.rows()

    def members(self, anchor: int) -> Sequence[int]:
        return self.fleet.tree(anchor)

    def reach(self, sharer: int) -> Slots:
        return self.topology.reach(sharer)

    def sharers_near(self, anchor: int) -> list[int]:
        tree = self.fleet.tree(anchor)
        return sorted(self.topology.sharers_near(tree).difference(tree))

    def _having_trait(self, trait_id: int) -> Mask:
        found = self.fleet.traits.get(trait_id)
        return np.zeros(self.size, np.bool_) if found is None else found.mask(self.size)

    def _in_aggregate(self, aggregate: str) -> Mask:
        found = self.fleet.aggregates.get(aggregate)
        return np.zeros(self.size, np.bool_) if found is None else found.mask(self.size)


class TreesView(View):
    """A few trees, with the sharing providers that reach them.

    Those sharing providers' own roots are here as well, so that every position has a root, but only
    the trees asked for are anchors.
    """

    def __init__(self, fleet: Fleet, roots: Iterable[int]) -> None:
        super().__init__(fleet)
        trees = {root: fleet.tree(root) for root in roots}
        near = {root: self.topology.sharers_near(tree).difference(tree) for root, tree in trees.items()}
        slots = dict.fromkeys(slot for tree in trees.values() for slot in tree)
        for sharers in near.values():
            for slot in sorted(sharers):
                slots[slot] = None
                slots[fleet.root_of(slot)] = None
        self.slots = list(slots)
        position = self._position = {slot: place for place, slot in enumerate(self.slots)}
        self.root = np.fromiter((position[fleet.root_of(slot)] for slot in self.slots), np.intp, len(slots))
        self._members = {position[root]: [position[slot] for slot in tree] for root, tree in trees.items()}
        self._near = {
            position[root]: sorted(position[slot] for slot in sharers) for root, sharers in near.items()
        }
        self.anchors = self.where(list(self._members))
        self.lone = self.where(
            [root for root, tree in self._members.items() if len(tree) == 1 and not self._near[root]]
        )
        self.flat = all(len(tree) == 1 for tree in trees.values()) and not any(near.values())
        self.sharers = [place for place, slot in enumerate(self.slots) if slot in self.topology.sharer_set]

    def position_of(self, slot: int) -> int:
        return self._position.get(slot, -1)

    def rows(self, class_id: int) -> Rows:
        column = self.fleet.columns.get(class_id)
        if column is None:
            return Column().rows()
        rows_of = self.fleet.rows_of
        held = [
            (place, rows_of[slot][class_id])
            for place, slot in enumerate(self.slots)
            if class_id in rows_of[slot]
        ]
        return column.gather([place for place, _ in held], [row for _, row in held])

    def members(self, anchor: int) -> Sequence[int]:
        return self._members[anchor]

    def reach(self, sharer: int) -> Slots:
        reached = [root for root, sharers in self._near.items() if sharer in sharers]
        return np.array([*reached, self.root[sharer]], np.intp)

    def sharers_near(self, anchor: int) -> list[int]:
        return self._near[anchor]

    def _having_trait(self, trait_id: int) -> Mask:
        traits_of = self.fleet.traits_of
        return np.fromiter((trait_id in traits_of[slot] for slot in self.slots), np.bool_, self.size)

    def _in_aggregate(self, aggregate: str) -> Mask:
        aggregates_of = self.fleet.aggregates_of
        return np.fromiter((aggregate in aggregates_of[slot] for slot in self.slots), np.bool_, self.size)
