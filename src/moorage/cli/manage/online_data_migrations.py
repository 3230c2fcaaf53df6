"""`moorage-manage db online-data-migrations`: rows get their newer form beside a running cloud."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from moorage.cli import settings
from moorage.cli.options import Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.db import data_migrations, engine
from moorage.db.data_migrations.run import Stretch
from moorage.db.database import Database

SOME_LEFT = 1
"""What it leaves with, as the reference's command does."""


def online_data_migrations(
    context: typer.Context,
    max_count: Annotated[
        int | None, typer.Option("--max-count", min=1, help="Rows at most; all by default.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Rows of one transaction.")] = 100,
    as_json: Json = False,
) -> None:
    """Bring rows into the form of this release, in small batches, beside a running cloud.

    Run it after the last process of the release before is gone. It may be cut off and run again; it leaves
    with 1 as long as rows are left.

    Example: moorage-manage --config-file moorage.conf db online-data-migrations --max-count 10000
    """
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown: list[dict[str, str | int]] = []
    budget = sys.maxsize if max_count is None else max_count
    with Progress(
        *columns, console=Console(stderr=True), disable=as_json or not sys.stderr.isatty()
    ) as progress:
        for migration in data_migrations.ALL:
            stretch = Stretch(database, migration, batch)
            bar = progress.add_task(migration.name, total=stretch.left)
            for rows in stretch.run(budget):
                budget -= rows
                progress.advance(bar, rows)
            shown.append({"name": migration.name, "migrated": stretch.migrated, "left": stretch.count()})
    if as_json:
        typer.echo(json.dumps(shown))
    else:
        for one in shown:
            typer.echo(f"{one['name']}: {one['migrated']} migrated, {one['left']} left")
        if not shown:
            typer.echo("nothing to do: this release has no data migrations")
    if any(one["left"] for one in shown):
        raise typer.Exit(SOME_LEFT)
