"""Share the nodes of a simulated Ironic among hosts: cold start, unchanged pass, take-over."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from bench.fleet.measures import Figures, measure
from bench.fleet.site import running

EXAMPLE = "Example: python -m bench.fleet --sizes 1000,10000 --agents 1,3 --json figures.json"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    sizes: Annotated[str, typer.Option(help="Fleets, in nodes.")] = "1000,10000,100000",
    agents: Annotated[str, typer.Option(help="Hosts that share them.")] = "1,3,10",
    full: Annotated[bool, typer.Option("--full", help="List all nodes in every pass.")] = False,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    console = Console(width=max(140, Console().width))
    if os.getloadavg()[0] > 1:
        console.print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): do not trust these figures.")
    found: list[Figures] = []
    for size in [int(size) for size in sizes.split(",")]:
        for count in [int(count) for count in agents.split(",")]:
            with (
                tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory,
                running(Path(directory), size, full=full) as site,
            ):
                found.append(measure(site, count))
            console.print(_table(found[-1:]))
    console.print(_table(found))
    if output is not None:
        output.write_text(json.dumps([dataclasses.asdict(one) for one in found], indent=1) + "\n")
    if any(one.pass_rows_written for one in found):
        console.print("A pass in which nothing had changed wrote to the database, which it must not.")
        raise typer.Exit(1)


def _table(figures: list[Figures]) -> Table:
    columns = (
        "nodes",
        "agents",
        "cold, s",
        "its CPU, s",
        "pass CPU, s",
        "an agent's, s",
        "rows written",
        "take-over, s",
        "MiB",
    )
    table = Table(*columns, box=box.SIMPLE_HEAD)
    for one in figures:
        takeover = "" if one.takeover_seconds is None else f"{one.takeover_seconds:.1f}"
        table.add_row(
            f"{one.nodes:,}",
            str(one.agents),
            f"{one.cold_seconds:.1f}",
            f"{one.cold_cpu_seconds:.1f}",
            f"{one.pass_cpu_seconds:.1f}",
            f"{one.idle_agent_cpu_seconds:.2f}",
            str(one.pass_rows_written),
            takeover,
            str(one.agent_mib),
        )
    return table


if __name__ == "__main__":
    app()
