"""Passwords and reservation ids are drawn from this."""

from __future__ import annotations

from collections import Counter

from moorage.core import random_text


def test_as_many_as_asked_for_of_the_alphabet() -> None:
    drawn = random_text.draw("abc", 3000)
    assert len(drawn) == 3000
    assert set(drawn) == set("abc")


def test_each_letter_is_as_likely() -> None:
    counted = Counter(random_text.draw("abcdefghij", 20_000))
    assert all(1_700 < count < 2_300 for count in counted.values())


def test_no_two_alike() -> None:
    assert len({random_text.draw("ab", 64) for _ in range(100)}) == 100
