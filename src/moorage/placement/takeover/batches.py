"""Rows, one an allocation, to consumers; consumers to batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter

from moorage.placement.takeover.records import BATCH, WholeAllocation, WholeConsumer

Held = tuple[int, WholeConsumer, WholeAllocation]
"""One allocation with its consumer, and a number that all allocations of that consumer share."""


def consumers(rows: Iterable[Held]) -> Iterator[list[WholeConsumer]]:
    """Of rows that have those of one consumer one after the other."""
    whole = (_one(held) for _, held in groupby(rows, key=itemgetter(0)))
    while batch := list(islice(whole, BATCH)):
        yield batch


def _one(held: Iterable[Held]) -> WholeConsumer:
    rows = list(held)
    return rows[0][1]._replace(allocations=sorted(allocation for *_, allocation in rows))
