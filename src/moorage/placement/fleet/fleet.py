"""The fleet: every provider, in columns, kept current record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moorage.placement.fleet.column import Column
from moorage.placement.fleet.names import Names
from moorage.placement.fleet.record import InventoryRecord, ProviderRecord
from moorage.placement.fleet.slotset import SlotSet
from moorage.placement.fleet.topology import Topology

NO_SLOT = -1
POOL_LIMIT = 65_536
"""So many distinct trait or aggregate tuples are remembered for sharing before starting afresh."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Fleet:
    """The in-memory picture of all providers that searches read.

    A provider lives in a slot: a small number that stays its own until it is removed, and by which
    every column and set knows it. Nothing here locks; the caller does.

    `structure` grows whenever trees, traits or aggregates change (usage and inventories leave it
    alone), so what is derived from those alone can be kept; `stamp` is new for a slot at each change.
    """

    def __init__(self) -> None:
        self.names = Names()
        self.structure = 0
        self.columns: dict[int, Column] = {}
        self.traits: dict[int, SlotSet] = {}
        self.aggregates: dict[str, SlotSet] = {}
        self.uuids: list[str] = []
        self.provider_names: list[str] = []
        self.ids: list[int] = []
        self.generations: list[int] = []
        self.updated_at: list[float] = []
        self.stamps: list[int] = []
        self.rows_of: list[dict[int, int]] = []
        """By slot: the row of each of its inventories, by class id."""
        self.traits_of: list[tuple[int, ...]] = []
        self.aggregates_of: list[tuple[str, ...]] = []
        self.root = np.empty(0, np.intp)
        self.parent = np.empty(0, np.intp)
        self._trees: dict[int, list[int]] = {}
        self._nested = 0
        self._free: list[int] = []
        self._slot_by_id: dict[int, int] = {}
        self._slot_by_uuid: dict[str, int] = {}
        self._slot_by_name: dict[str, int] = {}
        self._last_stamp = 0
        self._topology: Topology | None = None
        self._same_traits: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._same_aggregates: dict[tuple[str, ...], tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._slot_by_id)

    @property
    def size(self) -> int:
        """One more than the highest slot ever used; some slots below it may be empty."""
        return len(self.uuids)

    @property
    def has_trees(self) -> bool:
        """Whether any provider has a parent."""
        return self._nested > 0

    def slots(self) -> Iterator[int]:
        return iter(self._slot_by_id.values())

    def slot_of_id(self, provider_id: int) -> int | None:
        return self._slot_by_id.get(provider_id)

    def slot_of_uuid(self, uuid: str) -> int | None:
        return self._slot_by_uuid.get(uuid)

    def slot_of_name(self, name: str) -> int | None:
        return self._slot_by_name.get(name)

    def root_of(self, slot: int) -> int:
        return int(self.root[slot])

    def parent_of(self, slot: int) -> int | None:
        parent = int(self.parent[slot])
        return None if parent == NO_SLOT else parent

    def tree(self, root: int) -> Sequence[int]:
        """The slots of the tree under a root, the root first."""
        return self._trees.get(root) or (root,)

    def trees(self) -> Iterable[int]:
        """The roots that have children."""
        return self._trees.keys()

    @property
    def topology(self) -> Topology:
        """What follows from trees, traits and aggregates; kept until one of those changes."""
        if self._topology is None or self._topology.basis != (self.structure, self.names.sharing_trait_id):
            self._topology = Topology(self)
        return self._topology

    def inventory(self, slot: int) -> dict[int, tuple[int, int]]:
        """(capacity, used) by class id."""
        return {
            class_id: self.columns[class_id].capacity_and_used(row)
            for class_id, row in self.rows_of[slot].items()
        }

    # Changes

    def load(self, records: Iterable[ProviderRecord]) -> None:
        """Fill an empty fleet: the same outcome as `apply`, in bulk."""
        if self._slot_by_id:
            raise ValueError("a fleet is loaded once; apply changes after that")
        held: dict[int, tuple[list[int], list[InventoryRecord]]] = defaultdict(lambda: ([], []))
        by_traits: dict[tuple[int, ...], list[int]] = defaultdict(list)
        by_aggregates: dict[tuple[str, ...], list[int]] = defaultdict(list)
        lineage: list[tuple[int, int | None, int]] = []
        for record in records:
            slot = self._renew_slot(record)
            for inventory in record.inventories:
                slots, inventories = held[inventory.class_id]
                slots.append(slot)
                inventories.append(inventory)
            self.traits_of[slot] = _shared(self._same_traits, record.trait_ids)
            by_traits[record.trait_ids].append(slot)
            self.aggregates_of[slot] = _shared(self._same_aggregates, record.aggregates)
            by_aggregates[record.aggregates].append(slot)
            lineage.append((slot, record.parent_id, record.root_id))
        for class_id, (slots, inventories) in held.items():
            self._load_column(class_id, slots, inventories)
        _load_sets(self.traits, by_traits)
        _load_sets(self.aggregates, by_aggregates)
        for slot, parent_id, root_id in lineage:
            self._link(slot, parent_id, root_id)
        self.structure += 1

    def apply(self, records: Iterable[ProviderRecord], gone: Iterable[int] = ()) -> None:
        """Take over new and changed providers, and forget those with the ids `gone`: all of one moment.

        A parent may come after its children. When a provider moves to another tree, its descendants
        have changed as well (they have another root) and belong in the same batch. The slots of those that
        are gone are free only in the end: who leaves their trees in this batch still knows the trees by them.
        """
        batch = list(records)
        slots = [self._renew_slot(record) for record in batch]
        for slot, record in zip(slots, batch, strict=True):
            self._link(slot, record.parent_id, record.root_id)
            self._set_inventories(slot, record.inventories)
            self._set_traits(slot, record.trait_ids)
            self._set_aggregates(slot, record.aggregates)
        for provider_id in gone:
            self._remove(provider_id)

    def update_usage(
        self, provider_id: int, generation: int, updated_at: float, used: Mapping[int, int]
    ) -> None:
        """Take over the usage of the classes named: the cheap path, for what every claim changes."""
        slot = self._slot_by_id[provider_id]
        self.generations[slot] = generation
        self.updated_at[slot] = updated_at
        self._touch(slot)
        rows = self.rows_of[slot]
        for class_id, amount in used.items():
            self.columns[class_id].set_used(rows[class_id], amount)

    def _remove(self, provider_id: int) -> None:
        slot = self._slot_by_id.pop(provider_id, None)
        if slot is None:
            return
        self._set_inventories(slot, ())
        self._set_traits(slot, ())
        self._set_aggregates(slot, ())
        self._unlink(slot)
        _forget(self._slot_by_uuid, self.uuids[slot], slot)
        _forget(self._slot_by_name, self.provider_names[slot], slot)
        self._touch(slot)
        self.structure += 1
        self._free.append(slot)

    def _renew_slot(self, record: ProviderRecord) -> int:
        """The slot of a provider, with all of it that other providers have no part in."""
        slot = self._slot_by_id.get(record.id)
        if slot is None:
            slot = self._slot_by_id[record.id] = self._free.pop() if self._free else self._append_slot()
            self.structure += 1
        else:
            _forget(self._slot_by_uuid, self.uuids[slot], slot)
            _forget(self._slot_by_name, self.provider_names[slot], slot)
        self.ids[slot] = record.id
        self.uuids[slot] = record.uuid
        self.provider_names[slot] = record.name
        self.generations[slot] = record.generation
        self.updated_at[slot] = record.updated_at
        self._slot_by_uuid[record.uuid] = slot
        self._slot_by_name[record.name] = slot
        self._touch(slot)
        return slot

    def _append_slot(self) -> int:
        slot = len(self.uuids)
        self.ids.append(0)
        self.uuids.append("")
        self.provider_names.append("")
        self.generations.append(0)
        self.updated_at.append(0.0)
        self.stamps.append(0)
        self.rows_of.append({})
        self.traits_of.append(())
        self.aggregates_of.append(())
        if slot >= len(self.root):
            self.root = _grown(self.root)
            self.parent = _grown(self.parent)
        return slot

    def _touch(self, slot: int) -> None:
        self._last_stamp += 1
        self.stamps[slot] = self._last_stamp

    # Trees

    def _link(self, slot: int, parent_id: int | None, root_id: int) -> None:
        root = self._slot_by_id[root_id]
        parent = NO_SLOT if parent_id is None else self._slot_by_id[parent_id]
        old_root, old_parent = int(self.root[slot]), int(self.parent[slot])
        if (old_root, old_parent) == (root, parent):
            return
        self._nested += (parent != NO_SLOT) - (old_parent != NO_SLOT)
        self.parent[slot] = parent
        if old_root != root:
            self._leave_tree(slot)
            self.root[slot] = root
            if slot != root:
                self._trees.setdefault(root, [root]).append(slot)
        self.structure += 1

    def _unlink(self, slot: int) -> None:
        self._nested -= int(self.parent[slot]) != NO_SLOT
        self._leave_tree(slot)
        self._trees.pop(slot, None)
        self.root[slot] = self.parent[slot] = NO_SLOT

    def _leave_tree(self, slot: int) -> None:
        root = int(self.root[slot])
        members = self._trees.get(root)
        if members is None or root == slot:
            return
        members.remove(slot)
        if len(members) == 1:
            del self._trees[root]

    # What a provider has

    def _set_inventories(self, slot: int, inventories: Sequence[InventoryRecord]) -> None:
        rows = self.rows_of[slot]
        kept = {inventory.class_id for inventory in inventories}
        for class_id in rows.keys() - kept:
            moved = self.columns[class_id].remove(rows[class_id])
            if moved is not None:
                self.rows_of[moved][class_id] = rows[class_id]
            del rows[class_id]
        for inventory in inventories:
            class_id = inventory.class_id
            if class_id in rows:
                self.columns[class_id].replace(rows[class_id], inventory)
            else:
                if class_id not in self.columns:
                    self.columns[class_id] = Column()
                rows[class_id] = self.columns[class_id].append(slot, inventory)

    def _set_traits(self, slot: int, trait_ids: tuple[int, ...]) -> None:
        old = self.traits_of[slot]
        if old == trait_ids:
            return
        self.traits_of[slot] = _shared(self._same_traits, trait_ids)
        _move(self.traits, slot, set(old), set(trait_ids))
        self.structure += 1

    def _set_aggregates(self, slot: int, aggregates: tuple[str, ...]) -> None:
        old = self.aggregates_of[slot]
        if old == aggregates:
            return
        self.aggregates_of[slot] = _shared(self._same_aggregates, aggregates)
        _move(self.aggregates, slot, set(old), set(aggregates))
        self.structure += 1

    def _load_column(self, class_id: int, slots: list[int], inventories: list[InventoryRecord]) -> None:
        column = self.columns[class_id] = Column()
        row = column.extend(slots, inventories)
        for slot in slots:
            self.rows_of[slot][class_id] = row
            row += 1


def _forget(slots: dict[str, int], key: str, slot: int) -> None:
    """Drop an entry, unless another provider has taken the UUID or name over in the same batch."""
    if slots.get(key) == slot:
        del slots[key]


def _shared(pool: dict[Value, Value], value: Value) -> Value:
    """One object for equal values: providers of a kind have the same traits and aggregates."""
    if len(pool) >= POOL_LIMIT:
        pool.clear()
    return pool.setdefault(value, value)


def _move(sets: dict[Key, SlotSet], slot: int, old: set[Key], new: set[Key]) -> None:
    for key in old - new:
        sets[key].discard(slot)
        if not sets[key]:
            del sets[key]
    for key in new - old:
        if key not in sets:
            sets[key] = SlotSet()
        sets[key].add(slot)


def _load_sets(sets: dict[Key, SlotSet], groups: Mapping[tuple[Key, ...], list[int]]) -> None:
    """Fill the sets from slots that are already grouped by all the keys they have in common."""
    members: dict[Key, list[int]] = defaultdict(list)
    for keys, slots in groups.items():
        for key in keys:
            members[key].extend(slots)
    for key, slots in members.items():
        sets[key] = SlotSet()
        sets[key].add_many(slots)


def _grown(array: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    larger = np.full(max(64, len(array) * 2), NO_SLOT, np.intp)
    larger[: len(array)] = array
    return larger
