"""What was measured, and the table that shows it side by side."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum

from rich import box
from rich.table import Table


class Side(StrEnum):
    REFERENCE = "reference"
    MOORAGE = "moorage"


class Measure(StrEnum):
    CANDIDATES = "candidates"
    IN_TREE = "in_tree"
    CLAIMS = "claims"
    HOT = "hot"
    REPORT = "report"
    UNCHANGED = "unchanged"
    MEMORY = "memory"
    COLD = "cold"


@dataclass(frozen=True)
class Meaning:
    """How a measure is named, in what unit, and which way is better."""

    title: str
    unit: str
    more_is_better: bool = False


MEANINGS = {
    Measure.CANDIDATES: Meaning("candidates, limit=1000, one client, median", "ms"),
    Measure.IN_TREE: Meaning("candidates in_tree, one client, median", "ms"),
    Measure.CLAIMS: Meaning("claims, 16 clients, many nodes", "/s", more_is_better=True),
    Measure.HOT: Meaning("claims, 16 clients, one provider", "/s", more_is_better=True),
    Measure.REPORT: Meaning("report of the whole new fleet", "s"),
    Measure.UNCHANGED: Meaning("report of the unchanged fleet", "s"),
    Measure.MEMORY: Meaning("memory of a worker", "MB"),
    Measure.COLD: Meaning("cold start to the first answer", "s"),
}


@dataclass(frozen=True)
class Figure:
    size: int
    measure: Measure
    side: Side
    value: float
    note: str = ""
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    """How busy the machine was: without it a figure can't be trusted, nor a ratio of two."""


@dataclass
class Figures:
    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)

    def table(self) -> Table:
        table = Table(box=box.MARKDOWN)
        for heading in ("nodes", "measure", "reference", "moorage", "ratio", "notes"):
            table.add_column(heading, justify="left" if heading in ("measure", "notes") else "right")
        for size in sorted({figure.size for figure in self.figures}):
            for measure in Measure:
                row = self._row(size, measure)
                if row:
                    table.add_row(*row)
        return table

    def load_range(self) -> str:
        """The load average of the last minute, at the times of the figures of each side."""
        words = []
        for side in Side:
            loads = [figure.load for figure in self.figures if figure.side is side]
            if loads:
                words.append(f"{side}: {min(loads):.1f} to {max(loads):.1f}")
        return f"load average on {os.cpu_count()} cores: " + "; ".join(words)

    def as_json(self) -> list[dict[str, object]]:
        return [
            {
                "nodes": figure.size,
                "measure": figure.measure.value,
                "side": figure.side.value,
                "value": round(figure.value, 3),
                "unit": MEANINGS[figure.measure].unit,
                "note": figure.note,
                "load": round(figure.load, 1),
            }
            for figure in self.figures
        ]

    def _row(self, size: int, measure: Measure) -> list[str]:
        sides = {
            figure.side: figure
            for figure in self.figures
            if figure.size == size and figure.measure is measure
        }
        if not sides:
            return []
        reference, ours = sides.get(Side.REFERENCE), sides.get(Side.MOORAGE)
        ratio = "—"
        if reference and ours and measure is not Measure.MEMORY:
            better, worse = (ours, reference) if MEANINGS[measure].more_is_better else (reference, ours)
            ratio = f"{better.value / worse.value:.1f} ×"
        notes = "; ".join(f"{one.side.value}: {one.note}" for one in (reference, ours) if one and one.note)
        return [
            f"{size:,}",
            MEANINGS[measure].title,
            _shown(reference, measure),
            _shown(ours, measure),
            ratio,
            notes,
        ]


def _shown(figure: Figure | None, measure: Measure) -> str:
    if figure is None:
        return "—"
    digits = 2 if figure.value < 10 else 1 if figure.value < 100 else 0
    return f"{figure.value:,.{digits}f} {MEANINGS[measure].unit}"
