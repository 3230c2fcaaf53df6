"""`moorage placement capacity`: how many more of something fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from moorage.cli.commands import flavor
from moorage.cli.errors import CommandError
from moorage.cli.options import Cloud, Data, Json
from moorage.cli.service import ask
from moorage.placement.search.capacity import Capacity

PATH = "/moorage/v1/capacity"


def capacity(
    query: Annotated[
        str | None,
        typer.Argument(help="The query string of an allocation-candidates request.", show_default=False),
    ] = None,
    flavor_like: Annotated[
        str | None,
        typer.Option(
            help=f"The request of a flavor's server instead, for example {flavor.EXAMPLE}", show_default=False
        ),
    ] = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Count how many more of a request would fit, in all and in each aggregate.

    Example: moorage placement capacity --flavor-like vcpus=4,ram=8192,disk=40
    """
    if (query is None) == (flavor_like is None):
        raise CommandError("give either a query or --flavor-like")
    asked = query if query is not None else flavor.query(flavor_like or "")
    answer = ask(PATH, f"{asked}&by_aggregate=true", cloud, data)
    if as_json:
        typer.echo(answer)
    else:
        _show(msgspec.json.decode(answer, type=Capacity), Console(highlight=False, soft_wrap=True))


def _show(found: Capacity, console: Console) -> None:
    bound = "" if found.exact else "at least "
    trees = "1 tree" if found.trees == 1 else f"{found.trees} trees"
    console.print(f"[bold]{bound}{found.total} more[/] fit, on {trees}.")
    if found.by_aggregate:
        table = Table("aggregate", "fit", box=box.SIMPLE_HEAD, pad_edge=False)
        for uuid, count in sorted(found.by_aggregate.items(), key=lambda pair: -pair[1]):
            table.add_row(uuid, f"{bound}{count}")
        console.print(table)
