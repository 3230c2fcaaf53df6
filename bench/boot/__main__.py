"""Boot servers on simulated nodes, embedded and scaled, on this machine, now."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.boot import measures, sites
from bench.boot.sites import Form

EXAMPLE = "Example: python -m bench.boot --sizes 1000 --forms embedded --servers 1000 --json figures.json"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    sizes: Annotated[str, typer.Option(help="Fleets to boot on, in nodes.")] = "1000,10000",
    forms: Annotated[str, typer.Option(help=f"Some of: {', '.join(Form)}.")] = ",".join(Form),
    servers: Annotated[int, typer.Option(help="How many servers are booted at once.")] = 2000,
    clients: Annotated[int, typer.Option(help="How many clients ask for them.")] = 16,
    decisions: Annotated[int, typer.Option(help="How many come one at a time, for the decision.")] = 60,
    output: Annotated[Path | None, typer.Option("--json", help="Write the figures here.")] = None,
) -> None:
    console = Console(width=max(140, Console().width))
    if os.getloadavg()[0] > 1:
        console.print(f"The machine is busy (load {os.getloadavg()[0]:.1f}): do not trust these figures.")
    figures: list[dict[str, Any]] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=None)
        for form in [Form(name) for name in forms.split(",")]:
            for size in [int(size) for size in sizes.split(",")]:
                progress.update(task, description=f"{form}, {size:,} nodes")
                with tempfile.TemporaryDirectory(prefix="moorage-bench-") as directory:
                    figures.append(_measure(form, size, Path(directory), servers, clients, decisions))
    console.print(_table(figures), soft_wrap=True)
    if output is not None:
        output.write_text(json.dumps(figures, indent=1) + "\n")


def _measure(
    form: Form, nodes: int, directory: Path, servers: int, clients: int, decisions: int
) -> dict[str, Any]:
    with sites.STARTERS[form](directory, nodes) as site:
        image = measures.an_image(site)
        boots = measures.boots(site, image, servers, clients)
        lone = measures.lone_boots(site, image, decisions)
    return {
        "form": form.value,
        "nodes": nodes,
        "servers": servers,
        "servers_per_second": boots.rate,
        "p50_ms": 1000 * boots.latency(50),
        "p95_ms": 1000 * boots.latency(95),
        "answer_p50_ms": boots.answer_ms,
        "cpu_ms_per_server": 1000 * boots.cpu_seconds / boots.count,
        "decision_p50_ms": lone.decision,
        "with_claim_p50_ms": lone.with_claim,
        "lone_boot_p50_ms": lone.running,
        "load": os.getloadavg()[0],
    }


_COLUMNS = {
    "form": "{}",
    "nodes": "{:,}",
    "servers": "{:,}",
    "servers_per_second": "{:.0f}",
    "p50_ms": "{:.0f}",
    "p95_ms": "{:.0f}",
    "answer_p50_ms": "{:.1f}",
    "cpu_ms_per_server": "{:.2f}",
    "decision_p50_ms": "{:.2f}",
    "with_claim_p50_ms": "{:.2f}",
    "lone_boot_p50_ms": "{:.0f}",
    "load": "{:.1f}",
}


def _table(figures: list[dict[str, Any]]) -> Table:
    table = Table(box=box.MARKDOWN)
    for name in _COLUMNS:
        table.add_column(name.replace("_", " "), justify="left" if name == "form" else "right")
    for figure in figures:
        table.add_row(*(text.format(figure[name]) for name, text in _COLUMNS.items()))
    return table


if __name__ == "__main__":
    app()
