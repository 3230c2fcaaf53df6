"""The longest test files are handed out first, by a list that has to name files which are there."""

from __future__ import annotations

from tests.support.order import LONGEST_FIRST, ROOT, rank


def test_every_file_of_the_order_is_there() -> None:
    assert [name for name in LONGEST_FIRST if not (ROOT / name).is_file()] == []


def test_a_file_that_is_not_named_comes_after_those_that_are() -> None:
    ranks = [rank(ROOT / name) for name in (*LONGEST_FIRST, "tests/unit/support/test_order.py")]
    assert ranks == sorted(set(ranks))
