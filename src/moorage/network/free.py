"""Which addresses of a range seem to be free: a guess in memory, which the database confirms.

Taking one costs the same whether the range is empty or nearly full: a cursor goes round the range once, from
a random start so that several processes seldom want the same; then come those that were given back, the
oldest first, so that an address rests before its next use.
"""

from __future__ import annotations

import random
import threading
from array import array
from collections.abc import Iterable

_TIDY = 1024


class _Queue:
    """First in, first out, in eight bytes each: of a large range, all are in here after a while. Of one
    that is larger still, as with IPv6, never all are."""

    def __init__(self, size: int) -> None:
        self._offsets: array[int] | list[int] = array("Q") if size <= 1 << 64 else []
        self._first = 0

    def __len__(self) -> int:
        return len(self._offsets) - self._first

    def put(self, offset: int) -> None:
        self._offsets.append(offset)

    def take(self) -> int:
        offset = self._offsets[self._first]
        self._first += 1
        if self._first > _TIDY and self._first * 2 > len(self._offsets):
            del self._offsets[: self._first]
            self._first = 0
        return offset


class FreeAddresses:
    """Offsets into a range of `size` addresses. Knows nothing until `reset` says what is used."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._used: set[int] = set()
        self._given_back = _Queue(self._size)
        self._cursor = 0
        self._unvisited = 0
        self.strays = 0
        """Addresses in use that are outside the range, because it was another one once."""

    def reset(self, used: Iterable[int], strays: int) -> None:
        with self._lock:
            self._used = set(used)
            self._given_back = _Queue(self._size)
            self._cursor = random.randrange(self._size)
            self._unvisited = self._size
            self.strays = strays

    def take(self, count: int) -> list[int]:
        """Up to `count` offsets that seem to be free; they count as used from now on."""
        taken: list[int] = []
        with self._lock:
            while len(taken) < count and self._unvisited:
                if self._cursor not in self._used:
                    taken.append(self._cursor)
                self._cursor = (self._cursor + 1) % self._size
                self._unvisited -= 1
            while len(taken) < count and self._given_back:
                taken.append(self._given_back.take())
            self._used.update(taken)
        return taken

    def give_back(self, offset: int) -> None:
        with self._lock:
            if offset in self._used:
                self._used.discard(offset)
                self._given_back.put(offset)
