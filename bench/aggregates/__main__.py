"""Mirror host aggregates in Placement: a first run, one that finds nothing to do, and single hosts."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.aggregates import measures, site
from bench.aggregates.measures import Figure
from bench.aggregates.site import Size

EXAMPLE = "Example: python -m bench.aggregates --sizes 1000,10000x10 --json figures.json"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    sizes: Annotated[
        str, typer.Option(help="Hosts, and nodes of each if it is more than one.")
    ] = "1000,10000,10000x10",
    hosts: Annotated[int, typer.Option(help="How many hosts are added one by one.")] = 100,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    console = Console(width=max(120, Console().width))
    if os.getloadavg()[0] > 1:
        console.print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): do not trust these figures.")
    figures: list[Figure] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        for size in [Size.parse(text) for text in sizes.split(",")]:
            progress.update(task, description=f"{size.hosts:,} hosts, {size.nodes:,} nodes")
            with (
                tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory,
                site.standing(Path(directory), size) as standing,
            ):
                figures += measures.first_and_no_change(standing)
                figures.append(measures.add_host(standing, hosts))
    console.print(_table(figures), soft_wrap=True)
    if output is not None:
        output.write_text(json.dumps([figure.as_json() for figure in figures], indent=1) + "\n")


def _table(figures: list[Figure]) -> Table:
    table = Table(box=box.MARKDOWN)
    for name in ("hosts", "nodes", "measure", "time", "processor time", "load"):
        table.add_column(name, justify="left" if name == "measure" else "right")
    for figure in figures:
        table.add_row(
            f"{figure.hosts:,}",
            f"{figure.nodes:,}",
            figure.measure,
            _duration(figure.seconds),
            _duration(figure.cpu_seconds),
            f"{figure.load:.1f}",
        )
    return table


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1000 * seconds:.1f} ms"


if __name__ == "__main__":
    app()
