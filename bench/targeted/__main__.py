"""How long a decision takes for one certain host, beside one for any host, in fleets of growing size.

Also for a host that has many nodes itself.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.targeted.measures import Fleet

EXAMPLE = "Example: python -m bench.targeted --sizes 1000,10000 --json figures.json"

OTHERS = 100
"""Hosts beside the one that has many nodes."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    sizes: Annotated[str, typer.Option(help="Fleets, in nodes.")] = "1000,10000,100000",
    machines: Annotated[
        str, typer.Option(help="Nodes of the one host that has many, beside 100 others.")
    ] = "1,1000,30000",
    decisions: Annotated[int, typer.Option(help="Decisions of each kind.")] = 200,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    console = Console(width=max(120, Console().width))
    if os.getloadavg()[0] > 1:
        console.print(
            f"The machine is busy (load {os.getloadavg()[0]:.1f}): trust the processor time, not the rest."
        )
    figures: list[dict[str, Any]] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        for size in [int(text) for text in sizes.split(",")]:
            progress.update(task, description=f"{size:,} nodes")
            figures += _measure(size, decisions)
        for count in [int(text) for text in machines.split(",") if text]:
            progress.update(task, description=f"a host of {count:,} nodes")
            figures.append(_measure_metal(count, decisions))
    console.print(_table(figures))
    if output is not None:
        output.write_text(json.dumps(figures, indent=1) + "\n")


def _measure(size: int, count: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory:
        fleet = Fleet(Path(directory), size)
        found = [
            {"nodes": size, "for": what, **asdict(fleet.decisions(count, targeted=targeted))}
            for what, targeted in (("one host", True), ("any host", False))
        ]
        fleet.close()
    return found


def _measure_metal(machines: int, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory:
        fleet = Fleet(Path(directory), OTHERS, machines)
        timing = fleet.metal_decisions(count)
        fleet.close()
    return {"nodes": machines, "for": "a host with all of them", **asdict(timing)}


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table(title="One decision, in milliseconds")
    for name in ("nodes", "for", "p50", "p95", "processor", "questions"):
        table.add_column(name, justify="left" if name == "for" else "right")
    for row in figures:
        numbers = [f"{row[name]:.2f}" for name in ("p50", "p95", "processor", "questions")]
        table.add_row(f"{row['nodes']:,}", row["for"], *numbers)
    return table


if __name__ == "__main__":
    app()
