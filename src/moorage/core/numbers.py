"""Whole numbers in paths and query strings, as far as a database column can hold them."""

from __future__ import annotations

MOST_DIGITS = 255
"""Nobody means a longer one, and Python refuses to read one of some thousand digits."""
MOST = 999_999_999_999_999_999
_COLUMN_DIGITS = 18


def whole(text: str) -> int | None:
    """The number that `text` is, at the most `MOST`: beyond it every column agrees; None if it is none.

    Digits are 0 to 9: other scripts have some that Python takes for digits, and some that it takes for
    numbers, but not both.
    """
    if not (text.isascii() and text.isdigit()) or len(text) > MOST_DIGITS:
        return None
    return bounded(int(text))


def row_number(text: str) -> int | None:
    """The number of a row, as old microversions name things; None for what can't be one."""
    return whole(text) if len(text) <= _COLUMN_DIGITS else None


def bounded(number: int) -> int:
    """The number, or the largest one."""
    return max(-MOST, min(number, MOST))
