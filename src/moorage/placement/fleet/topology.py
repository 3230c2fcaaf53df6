"""Who stands where: roots, providers that stand alone, and who shares with whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from moorage.placement.fleet.slotset import Mask, Slots

if TYPE_CHECKING:
    from moorage.placement.fleet.fleet import Fleet


class Topology:
    """Derived from trees, traits and aggregates alone, so it outlives every claim.

    A sharing provider gives of its inventory to every tree with a member in one of its aggregates: it
    "reaches" the root of that tree. Masks over the whole fleet are made on first use, so a query for
    one tree never pays for them.
    """

    def __init__(self, fleet: Fleet) -> None:
        sharing_trait = fleet.names.sharing_trait_id
        self.basis = (fleet.structure, sharing_trait)
        self._fleet = fleet
        self._reach: dict[int, Slots] = {}
        shared = fleet.traits.get(sharing_trait) if sharing_trait is not None else None
        self.sharers: tuple[int, ...] = () if shared is None else tuple(shared.slots().tolist())
        self.sharer_set = frozenset(self.sharers)
        self._sharers_in: dict[str, list[int]] = defaultdict(list)
        for slot in self.sharers:
            for aggregate in fleet.aggregates_of[slot]:
                self._sharers_in[aggregate].append(slot)

    @cached_property
    def every_slot(self) -> Slots:
        return np.arange(self._fleet.size)

    @cached_property
    def roots(self) -> Mask:
        """By slot: whether a root lives there."""
        return np.equal(self._fleet.root[: self._fleet.size], self.every_slot)

    @cached_property
    def lone(self) -> Mask:
        """By slot: whether a root lives there that has no children and that no sharing provider reaches."""
        root = self._fleet.root[: self._fleet.size]
        children = np.flatnonzero((root != self.every_slot) & (root >= 0))
        lone = self.roots.copy()
        lone[root[children]] = False
        for aggregate in self._sharers_in:
            lone[root[self._fleet.aggregates[aggregate].slots()]] = False
        return lone

    def reach(self, sharer: int) -> Slots:
        """The roots that a sharing provider reaches, its own among them if it is in any aggregate."""
        known = self._reach.get(sharer)
        if known is None:
            members = [
                self._fleet.aggregates[aggregate].slots() for aggregate in self._fleet.aggregates_of[sharer]
            ]
            reached = self._fleet.root[np.concatenate(members)] if members else np.empty(0, np.intp)
            known = self._reach[sharer] = np.unique(reached)
        return known

    def sharers_near(self, slots: Iterable[int]) -> set[int]:
        """The sharing providers that reach the tree which these slots make up."""
        near: set[int] = set()
        if not self._sharers_in:
            return near
        for slot in slots:
            for aggregate in self._fleet.aggregates_of[slot]:
                near.update(self._sharers_in.get(aggregate, ()))
        return near
