"""`moorage-manage compute compare`: what differs between a Nova's databases and ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import typer

from moorage.cli import settings
from moorage.cli.errors import CommandError
from moorage.cli.manage.compute_import import ApiDatabase, CellDatabases, NovaConf, addresses
from moorage.cli.manage.placement_takeover import DIFFERENT
from moorage.cli.manage.takeover_bar import bar
from moorage.cli.options import Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.compute.takeover import comparing, nova_source, survey
from moorage.compute.takeover.comparing import RowComparison, RowDifference
from moorage.db import engine
from moorage.db.database import Database
from moorage.takeover.errors import TakeoverError
from moorage.takeover.remainders import EXAMPLES


def compare(
    context: typer.Context,
    nova_conf: NovaConf = None,
    api_database: ApiDatabase = None,
    cell_database: CellDatabases = None,
    as_json: Json = False,
) -> None:
    """Tell what differs between a Nova's cloud and ours, row by row; nothing is written.

    It is what `import` does at its end, for later: all that is in Nova's databases is looked for here. What
    an import leaves behind is not missed, and servers that were booted here are not told. Once agents have
    come and users have begun to change things, those differ.

    Exit codes: 0 both sides are the same; 1 the command could not run; 2 wrong usage; 7 something differs.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf compute compare --nova-conf nova.conf
    """
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    try:
        with (
            nova_source.opened(addresses(nova_conf, api_database, cell_database)) as source,
            database.snapshot() as connection,
            bar(quiet=as_json) as progress,
        ):
            found = comparing.compare(connection, source, survey.look(source), progress)
    except TakeoverError as error:
        raise CommandError(str(error)) from error
    if as_json:
        typer.echo(msgspec.json.encode(_report(found)))
    else:
        for line in _lines(found):
            typer.echo(line)
    raise typer.Exit(0 if found.is_equal else DIFFERENT)


def _report(found: RowComparison) -> dict[str, Any]:
    return {"equal": found.is_equal, **msgspec.to_builtins(found)}


def _lines(found: RowComparison) -> Iterator[str]:
    """A row that is another here is told once."""
    told = [difference for difference in found.differences if difference.missing or not difference.columns]
    differing = Counter(difference.table for difference in told)
    for table, count in found.compared.items():
        said = f"{differing[table]} differ" if differing[table] else "all the same"
        yield f"{table.replace('_', ' ')}: {count} compared, {said}"
        of_table = [difference for difference in told if difference.table == table]
        yield from (f"  {_line(difference)}" for difference in of_table[:EXAMPLES])
        if len(of_table) > EXAMPLES:
            yield f"  … and {len(of_table) - EXAMPLES} more"
    if found.is_equal:
        yield "both sides are the same"


def _line(difference: RowDifference) -> str:
    if difference.columns:
        return f"{difference.row}: {', '.join(difference.columns)} differs"
    return f"{difference.row}: only {'in Nova' if difference.missing else 'here'}"
