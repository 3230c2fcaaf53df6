"""Numbers in paths and query strings, as far as a database column can hold them."""

from __future__ import annotations

_MAX_DIGITS = 18
MOST = 999_999_999_999_999_999


def row_number(text: str) -> int | None:
    """The number of a row, as old microversions name things; None for what can't be one."""
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
        return None
    return int(text)


def bounded(number: int) -> int:
    """The number, or the largest one: beyond it every column agrees."""
    return max(-MOST, min(number, MOST))
