"""Side by side: the reference Placement service and ours, on this machine, now."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from bench.placement.figures import Figures, Measure
from bench.placement.plan import SETTINGS, Run
from tests.support import postgres

EXAMPLE = "Example: python -m bench.placement --sizes 1000,10000 --only candidates,claims --json figures.json"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    sizes: Annotated[str, typer.Option(help="Fleets to measure with, in nodes.")] = "1000,10000,100000",
    reference_up_to: Annotated[
        int, typer.Option(help="Largest fleet for the reference; 0 leaves it out.")
    ] = 10_000,
    only: Annotated[
        str, typer.Option(help=f"Some of: {', '.join(Measure)}.", show_default="everything")
    ] = ",".join(Measure),
    seconds: Annotated[float, typer.Option(help="How long claims are made for.")] = 8.0,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    figures = Figures()
    console = Console(width=max(160, Console().width))
    if os.getloadavg()[0] > 1:
        console.print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): do not trust these figures.")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    wanted = [int(size) for size in sizes.split(",")]
    with (
        tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory,
        postgres.start(SETTINGS) as server,
        Progress(*columns, console=console, transient=True) as progress,
    ):
        task = progress.add_task("starting", total=None)
        run = Run(
            server=server,
            directory=Path(directory),
            only=frozenset(Measure(name) for name in only.split(",")),
            seconds=seconds,
            tell=lambda what: progress.update(task, description=what),
            figures=figures,
        )
        for size in wanted:
            run.measure(size, reference_too=size <= reference_up_to)
    console.print(figures.table(), soft_wrap=True)
    console.print(figures.load_range())
    if output is not None:
        output.write_text(json.dumps(figures.as_json(), indent=1) + "\n")


if __name__ == "__main__":
    app()
