"""Sets of processors as Linux, libvirt and the field's options write them: `0-3,^2,8`."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PART = re.compile(r"(\^?)(\d{1,6})(?:-(\d{1,6}))?")


def parse_cpu_set(text: str) -> frozenset[int]:
    """Those that are named, without those that `^` takes away again; ValueError if it is no such set."""
    named: set[int] = set()
    taken_away: set[int] = set()
    for part in (part.strip() for part in text.split(",")):
        if not part:
            continue
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"'{part}' is no processor or range of processors")
        first, last = int(match[2]), int(match[3] or match[2])
        if last < first:
            raise ValueError(f"'{part}' ends before it begins")
        (taken_away if match[1] else named).update(range(first, last + 1))
    return frozenset(named - taken_away)


def format_cpu_set(cpus: Iterable[int]) -> str:
    """In the same notation, as short as it gets."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
