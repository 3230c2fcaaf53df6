"""Sizes of memory pages, and the resource classes that huge ones are counted in."""

from __future__ import annotations

import re

_CLASS = "CUSTOM_HUGEPAGES_{kib}KB"
_SIZE = re.compile(r"(\d{1,12})\s*([kKMGT]?)i?(b|B|bit)?")
_KIB = {"": 1, "K": 1, "M": 1024, "G": 1024**2, "T": 1024**3}
ORDINARY_KIB = 4
LARGE_KIB = 2048
"""The huge pages that `large` means: those that every processor has."""


def class_of(kib: int) -> str:
    """Of huge pages of that size, counted in pages."""
    return _CLASS.format(kib=kib)


def parse_size(text: str) -> int:
    """In KiB: a number of them, or one with a unit such as `2MB` or `1GiB`; ValueError if it is neither."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text}' is no size of a page")
    bits = 8 if match[3] in ("b", "bit") else 1
    return int(match[1]) * _KIB[match[2].upper()] // bits
