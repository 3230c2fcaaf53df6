"""A set of slots that stays small whether it has three members or all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SPARSE_LIMIT = 512
"""Above this many members a bitset is used; 512 sorted int32 values take 2 KB."""

Mask = npt.NDArray[np.bool_]
Slots = npt.NDArray[np.intp]


class SlotSet:
    """The slots that have one trait, or are in one aggregate.

    Fleets have a few traits that nearly every provider has and many that a handful have, so a set is
    a sorted array until it is large, and a packed bitset from then on.
    """

    __slots__ = ("_bits", "_count", "_sorted")

    def __init__(self) -> None:
        self._sorted: npt.NDArray[np.int32] | None = np.empty(0, np.int32)
        self._bits: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, slot: int) -> None:
        if self._sorted is not None:
            place = int(np.searchsorted(self._sorted, slot))
            if place < self._count and self._sorted[place] == slot:
                return
            self._sorted = np.insert(self._sorted, place, slot)
            self._count += 1
            if self._count > SPARSE_LIMIT:
                self._become_dense()
            return
        byte, bit = slot >> 3, 128 >> (slot & 7)
        if byte >= len(self._bits):
            self._bits = np.concatenate([self._bits, np.zeros(byte + 1 - len(self._bits) + 1024, np.uint8)])
        if not self._bits[byte] & bit:
            self._bits[byte] |= bit
            self._count += 1

    def add_many(self, slots: list[int]) -> None:
        """The bulk form of `add`, for a cold start."""
        merged = np.union1d(self.slots(), np.asarray(slots, np.int32)).astype(np.int32)
        self._sorted, self._count = merged, len(merged)
        if self._count > SPARSE_LIMIT:
            self._become_dense()

    def discard(self, slot: int) -> None:
        if self._sorted is not None:
            place = int(np.searchsorted(self._sorted, slot))
            if place < self._count and self._sorted[place] == slot:
                self._sorted = np.delete(self._sorted, place)
                self._count -= 1
            return
        byte, bit = slot >> 3, 128 >> (slot & 7)
        if byte < len(self._bits) and self._bits[byte] & bit:
            self._bits[byte] &= 255 - bit
            self._count -= 1

    def slots(self) -> Slots:
        """The members in ascending order."""
        if self._sorted is not None:
            return self._sorted.astype(np.intp)
        return np.flatnonzero(np.unpackbits(self._bits))

    def mask(self, size: int) -> Mask:
        """Membership of the slots 0 … size-1, as a fresh array."""
        if self._sorted is None:
            if len(self._bits) * 8 >= size:
                return np.unpackbits(self._bits, count=size).view(np.bool_)
            mask = np.zeros(size, np.bool_)
            mask[: len(self._bits) * 8] = np.unpackbits(self._bits).view(np.bool_)
            return mask
        mask = np.zeros(size, np.bool_)
        mask[self._sorted] = True
        return mask

    def _become_dense(self) -> None:
        assert self._sorted is not None
        members = np.zeros(int(self._sorted[-1]) + 1, np.bool_)
        members[self._sorted] = True
        self._bits = np.packbits(members)
        self._sorted = None
