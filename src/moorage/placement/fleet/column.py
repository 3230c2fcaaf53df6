"""All inventories of one resource class, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from moorage.placement.fleet.record import InventoryRecord
from moorage.placement.fleet.slotset import Mask, Slots

Amounts = npt.NDArray[np.int64]
V = TypeVar("V", bound=np.generic)

LARGEST = 2**62
"""Capacities above this (an absurd allocation ratio) are taken as this, to stay within 64 bits."""


@dataclass(slots=True)
class Rows:
    """Inventories of one class side by side; `where` says which provider each belongs to."""

    where: Slots
    capacity: Amounts
    used: Amounts
    min_unit: Amounts
    max_unit: Amounts
    step_size: Amounts
    uniform: bool = False
    """True if every min_unit and step_size is 1, which lets the common query skip both checks."""
    in_place: bool = False
    """True if each row belongs to the provider of its own number, so that nothing has to be sorted back."""

    def by_position(self, values: npt.NDArray[V], size: int) -> npt.NDArray[V]:
        """Values of the rows, put where they belong among `size` providers; zero for those without a row."""
        if self.in_place and len(values) == size:
            return values
        sorted_back = np.zeros(size, values.dtype)
        sorted_back[self.where] = values
        return sorted_back

    def has_room(self, amount: int) -> Mask:
        return self.capacity - self.used >= amount

    def allows_unit(self, amount: int) -> Mask:
        """Whether the amount, as one piece, respects the smallest, largest and step units."""
        allowed = self.max_unit >= amount
        if not self.uniform:
            allowed &= self.min_unit <= amount
            allowed &= amount % self.step_size == 0
        return allowed

    def fits(self, amount: int) -> Mask:
        return self.has_room(amount) & self.allows_unit(amount)

    def takes_in_total(self, amount: int) -> Mask:
        """Whether several pieces that sum up to the amount fit (units were checked piece by piece)."""
        return self.has_room(amount) & (self.max_unit >= amount)


class Column:
    """The growable store behind `Rows`: rows are dense, a removed row is replaced by the last one."""

    __slots__ = ("_arrays", "_astray", "_size", "_uneven")

    def __init__(self) -> None:
        self._size = 0
        self._uneven = 0
        self._astray = 0
        """Rows that are not at their provider's number."""
        self._arrays = _allocate(16)

    def __len__(self) -> int:
        return self._size

    def append(self, slot: int, inventory: InventoryRecord) -> int:
        """Add one row; answers its number."""
        row = self._size
        self._reserve(row + 1)
        self._size += 1
        self._arrays.where[row] = slot
        self._fill(row, inventory)
        self._uneven += _is_uneven(inventory)
        self._astray += slot != row
        return row

    def extend(self, slots: Sequence[int], inventories: Sequence[InventoryRecord]) -> int:
        """Add many rows at once; answers the number of the first."""
        first, count = self._size, len(slots)
        self._reserve(first + count)
        self._size += count
        rows = slice(first, self._size)
        table = np.array(inventories, dtype=np.float64)
        arrays = self._arrays
        arrays.where[rows] = slots
        self._astray += int(np.count_nonzero(arrays.where[rows] != np.arange(first, self._size)))
        capacity = (table[:, 1] - table[:, 2]) * table[:, 6]
        arrays.capacity[rows] = np.minimum(capacity, LARGEST).astype(np.int64)
        arrays.min_unit[rows] = table[:, 3]
        arrays.max_unit[rows] = table[:, 4]
        arrays.step_size[rows] = table[:, 5]
        arrays.used[rows] = table[:, 7]
        self._uneven += int(np.count_nonzero((table[:, 3] != 1) | (table[:, 5] != 1)))
        return first

    def replace(self, row: int, inventory: InventoryRecord) -> None:
        self._uneven += _is_uneven(inventory) - self._row_is_uneven(row)
        self._fill(row, inventory)

    def set_used(self, row: int, used: int) -> None:
        self._arrays.used[row] = used

    def remove(self, row: int) -> int | None:
        """Drop a row; answers the slot whose row now has this number, if another took its place."""
        self._uneven -= self._row_is_uneven(row)
        where, last = self._arrays.where, self._size - 1
        self._astray -= int(where[row] != row)
        self._size = last
        if row == last:
            return None
        self._astray += int(where[last] != row) - int(where[last] != last)
        for array in _columns(self._arrays):
            array[row] = array[last]
        return int(where[row])

    def rows(self) -> Rows:
        """All rows, without a copy: valid until the column changes."""
        rows = _part(self._arrays, slice(self._size), self._uneven == 0)
        rows.in_place = self._astray == 0
        return rows

    def gather(self, positions: Sequence[int], rows: Sequence[int]) -> Rows:
        """A copy of some rows, as belonging to these positions."""
        part = _part(self._arrays, np.asarray(rows, np.intp), self._uneven == 0)
        part.where = np.asarray(positions, np.intp)
        return part

    def capacity_and_used(self, row: int) -> tuple[int, int]:
        return int(self._arrays.capacity[row]), int(self._arrays.used[row])

    def room(self, row: int) -> int:
        """The most that one consumer can still get in total from this row."""
        arrays = self._arrays
        return int(min(arrays.capacity[row] - arrays.used[row], arrays.max_unit[row]))

    def _fill(self, row: int, inventory: InventoryRecord) -> None:
        arrays = self._arrays
        arrays.capacity[row] = min(inventory.capacity, LARGEST)
        arrays.used[row] = inventory.used
        arrays.min_unit[row] = inventory.min_unit
        arrays.max_unit[row] = inventory.max_unit
        arrays.step_size[row] = inventory.step_size

    def _row_is_uneven(self, row: int) -> bool:
        return bool(self._arrays.min_unit[row] != 1 or self._arrays.step_size[row] != 1)

    def _reserve(self, size: int) -> None:
        old = self._arrays
        if size <= len(old.where):
            return
        self._arrays = _allocate(max(size, len(old.where) * 2))
        for source, target in zip(_columns(old), _columns(self._arrays), strict=True):
            target[: self._size] = source[: self._size]


def _allocate(size: int) -> Rows:
    where, capacity, used, min_unit, max_unit, step_size = np.empty((6, size), np.int64)
    return Rows(where, capacity, used, min_unit, max_unit, step_size)


def _part(rows: Rows, index: slice | Slots, uniform: bool) -> Rows:
    return Rows(
        where=rows.where[index],
        capacity=rows.capacity[index],
        used=rows.used[index],
        min_unit=rows.min_unit[index],
        max_unit=rows.max_unit[index],
        step_size=rows.step_size[index],
        uniform=uniform,
    )


def _columns(rows: Rows) -> tuple[Slots, Amounts, Amounts, Amounts, Amounts, Amounts]:
    return rows.where, rows.capacity, rows.used, rows.min_unit, rows.max_unit, rows.step_size


def _is_uneven(inventory: InventoryRecord) -> bool:
    return inventory.min_unit != 1 or inventory.step_size != 1
