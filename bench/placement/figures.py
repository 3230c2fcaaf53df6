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
    cpu_ms: float | None = None
    """Processor time of service and database for each request, which a busy machine does not falsify."""
    load: float = field(default_factory=lambda: os.getloadavg()[0])
    """How busy the machine was: without it a figure can't be trusted, nor a ratio of two."""


@dataclass
class Figures:
    figures: list[Figure] = field(default_factory=list)

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)

    def table(self) -> Table:
        table = Table(box=box.MARKDOWN)
        for heading in (
            "nodes",
            "measure",
            "reference",
            "moorage",
            "ratio",
            "CPU each",
            "CPU ratio",
            "notes",
        ):
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
                "cpu_ms": None if figure.cpu_ms is None else round(figure.cpu_ms, 3),
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
        notes = "; ".join(f"{one.side.value}: {one.note}" for one in (reference, ours) if one and one.note)
        return [
            f"{size:,}",
            MEANINGS[measure].title,
            _shown(reference, measure),
            _shown(ours, measure),
            _ratio(reference, ours),
            " / ".join(f"{one.cpu_ms:,.1f} ms" for one in (reference, ours) if one and one.cpu_ms),
            _cpu_ratio(reference, ours),
            notes,
        ]


def _ratio(reference: Figure | None, ours: Figure | None) -> str:
    if reference is None or ours is None or ours.measure is Measure.MEMORY:
        return "—"
    more = MEANINGS[ours.measure].more_is_better
    better, worse = (ours, reference) if more else (reference, ours)
    return f"{better.value / worse.value:.1f} ×"


def _cpu_ratio(reference: Figure | None, ours: Figure | None) -> str:
    if not reference or not ours or not reference.cpu_ms or not ours.cpu_ms:
        return "—"
    return f"{reference.cpu_ms / ours.cpu_ms:.1f} ×"


def _shown(figure: Figure | None, measure: Measure) -> str:
    if figure is None:
        return "—"
    digits = 2 if figure.value < 10 else 1 if figure.value < 100 else 0
    return f"{figure.value:,.{digits}f} {MEANINGS[measure].unit}"
