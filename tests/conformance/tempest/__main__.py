"""Run Tempest's tests of the Compute API against a cloud that is made for it, and count."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.conformance.tempest.cloud import started
from tests.conformance.tempest.settings import OLDEST, settings
from tests.lab.tempest.workspace import Report, Workspace

ALL_OF_COMPUTE = r"^tempest\.(api\.compute|serial_tests\.api)\."
EXAMPLE = "Example: python -m tests.conformance.tempest --regex test_server_actions --stay"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command(help=f"{__doc__}\n\n{EXAMPLE}")
def main(
    regex: Annotated[str, typer.Option(help="Which tests.")] = ALL_OF_COMPUTE,
    oldest: Annotated[str, typer.Option(help="The oldest microversion that tests ask for.")] = OLDEST,
    workers: Annotated[int, typer.Option(help="Classes of tests that run at the same time.")] = 2,
    directory: Annotated[
        Path | None, typer.Option(help="Where logs go, and stay; else they are removed.")
    ] = None,
    stay: Annotated[bool, typer.Option(help="Leave the cloud running until Enter is pressed.")] = False,
) -> None:
    console = Console(soft_wrap=True)
    with tempfile.TemporaryDirectory(prefix="moorage-tempest-") as temporary:
        place = (directory or Path(temporary)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        console.print("Starting Keystone, Neutron, Glance and Moorage")
        with started(place) as cloud:
            workspace = Workspace(place / "tempest", settings(cloud, place / "tempest", oldest))
            report = workspace.run(regex, workers)
            show(console, report)
            if stay:
                console.input(f"The cloud stays up ({workspace.config} is for it). Enter ends it.")
    raise typer.Exit(1 if report.failed or not report.passed else 0)


def show(console: Console, report: Report) -> None:
    for reason, count in Counter(one.detail for one in report.skipped).most_common():
        console.print(f"{count:4} skipped: {reason}", markup=False, highlight=False)
    for one in report.failed:
        console.print(f"failed: {one.name}", markup=False, highlight=False)
    console.print(str(report))


if __name__ == "__main__":
    app()
