"""Which addresses seem to be free."""

from __future__ import annotations

import sys
from collections import deque

from moorage.network.free import FreeAddresses


def test_each_is_taken_once_and_rests_longest_after_it_was_given_back() -> None:
    free = FreeAddresses(5000)
    free.reset([7], strays=0)
    first = free.take(6000)
    assert sorted(first) == [offset for offset in range(5000) if offset != 7]
    assert free.take(1) == []
    resting: deque[int] = deque()
    for offset in first[:4000]:
        free.give_back(offset)
        resting.append(offset)
    for _ in range(20_000):
        (taken,) = free.take(1)
        assert taken == resting.popleft()
        free.give_back(taken)
        resting.append(taken)
    assert free.take(5000) == list(resting)


def test_what_was_not_taken_is_not_given_back() -> None:
    free = FreeAddresses(3)
    free.reset([], strays=0)
    free.give_back(1)
    assert len(free.take(5)) == 3


def test_a_range_of_ipv6_may_be_larger_than_any_number_of_a_machine() -> None:
    free = FreeAddresses(1 << 80)
    free.reset([], strays=0)
    for _ in range(20):
        for offset in free.take(100):
            free.give_back(offset)
    assert len(set(free.take(5000))) == 5000


def test_a_large_range_that_was_used_up_takes_little_memory() -> None:
    free = FreeAddresses(200_000)
    free.reset([], strays=0)
    for _ in range(3):
        for offset in free.take(200_000):
            free.give_back(offset)
    assert sys.getsizeof(free._given_back._offsets) < 8 * 200_000 * 3
