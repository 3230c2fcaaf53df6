"""What remains behind, found before anything is written: what can't come over, and what need not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

EXAMPLES = 20
"""So many of a kind are named; all are counted."""


class Weight(StrEnum):
    BLOCKING = "blocking"
    """Can't come over: nothing is written before somebody has mended it there."""
    OPTIONAL = "optional"
    """Can't come over, but can be left behind, if the operator says so."""
    NOTICE = "notice"
    """Stays behind, or changes its form, in a way that nobody sees through the API."""


class Remainder(msgspec.Struct, frozen=True):
    kind: str
    """For programs, and the same in every release."""
    weight: Weight
    sentence: str
    """What it is of which there are so many, and what mends it."""
    count: int
    examples: list[str]


class Remainders(msgspec.Struct):
    """Those of one take-over."""

    found: list[Remainder] = []

    def add(self, kind: str, weight: Weight, sentence: str, count: int, examples: Sequence[str] = ()) -> None:
        """Where there are none, nothing is found."""
        if count:
            self.found.append(Remainder(kind, weight, sentence, count, list(examples[:EXAMPLES])))

    def blocking(self, *, leave_out: bool) -> list[Remainder]:
        """Those for which nothing may be written; `leave_out` says that what can stay behind shall."""
        ignored = {Weight.NOTICE} | ({Weight.OPTIONAL} if leave_out else set())
        return [remainder for remainder in self.found if remainder.weight not in ignored]

    def lines(self) -> Iterator[str]:
        for remainder in self.found:
            yield f"{remainder.weight} ({remainder.count}): {remainder.sentence}"
            for example in remainder.examples:
                yield f"  {example}"
            if remainder.count > len(remainder.examples) > 0:
                yield f"  … and {remainder.count - len(remainder.examples)} more"
