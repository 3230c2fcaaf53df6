"""`moorage-manage db purge`: what is over goes, as a conductor's chore has it, but now."""

from __future__ import annotations

import re
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from moorage.cli import settings
from moorage.cli.errors import CommandError
from moorage.cli.options import Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.compute.growth import purging
from moorage.compute.growth.purging import Remains
from moorage.core.clock import utcnow
from moorage.db import engine
from moorage.db.database import Database

_AGE = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def purge(
    context: typer.Context,
    before: Annotated[
        str, typer.Option(help="What was over then: an age, as 90d, 12h or 30m; or a date, as 2026-08-01.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    as_json: Json = False,
) -> None:
    """Delete servers that were deleted before, and finished operations, traces, actions and audits.

    In small batches, beside a running cloud. Conductors do it by themselves: [compute] keep_deleted.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf db purge --before 90d --dry-run
    """
    moment = _moment(before)
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    with database.read() as connection:
        counts = {what.value: purging.count(connection, what, moment) for what in Remains}
    gone = Counter[str](counts) if dry_run else _purged(database, moment, sum(counts.values()), as_json)
    shown = {what.value: gone[what.value] for what in Remains}
    if as_json:
        typer.echo(msgspec.json.encode({"before": moment, "dry_run": dry_run, "rows": shown}))
        return
    for table, rows in shown.items():
        typer.echo(f"{table}: {rows}")
    if dry_run:
        typer.echo("a dry run: nothing was deleted; what goes along with a server is not counted by itself")


def _purged(database: Database, moment: datetime, total: int, as_json: bool) -> Counter[str]:
    gone = Counter[str]()
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    shown = not as_json and sys.stderr.isatty()
    with Progress(*columns, console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("rows", total=total)
        for what, rows in purging.batches(database.transact, moment):
            gone[what.value] += rows
            progress.update(task, advance=rows)
    return gone


def _moment(before: str) -> datetime:
    found = _AGE.fullmatch(before)
    if found is not None:
        return utcnow() - timedelta(**{_UNITS[found[2]]: int(found[1])})
    try:
        moment = datetime.fromisoformat(before)
    except ValueError as error:
        raise CommandError(
            f"--before is an age (90d, 12h, 30m) or a date (2026-08-01), not {before!r}"
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
