"""`moorage-manage compute import`: a cloud of Nova's becomes ours, with its guests running."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from moorage.cli import settings
from moorage.cli.errors import CommandError, Commands
from moorage.cli.manage.takeover_bar import bar
from moorage.cli.options import Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.compute.takeover import nova_source, survey, writing
from moorage.compute.takeover.comparing import RowDifference
from moorage.compute.takeover.nova_source import NovaAddresses
from moorage.compute.takeover.survey import Survey
from moorage.db import engine
from moorage.db.database import Database
from moorage.takeover.errors import TakeoverError
from moorage.takeover.remainders import Remainder

compute = Commands(
    help="Servers and all that belongs to them.\n\n"
    "Example: moorage-manage compute import --nova-conf /etc/nova/nova.conf --dry-run"
)

NovaConf = Annotated[
    Path | None,
    typer.Option(
        "--nova-conf",
        metavar="FILE",
        help="Nova's own configuration, which says where its databases are.",
        show_default=False,
    ),
]
ApiDatabase = Annotated[
    str | None,
    typer.Option("--api-database", metavar="URL", help="The database of Nova's API.", show_default=False),
]
CellDatabases = Annotated[
    list[str] | None,
    typer.Option(
        "--cell-database",
        metavar="URL",
        help="That of a cell, cell0's last; if none is named, the API's database says where they are.",
        show_default=False,
    ),
]


class ImportReport(msgspec.Struct, frozen=True):
    dry_run: bool
    written: bool
    counts: dict[str, int]
    remainders: list[Remainder]
    differences: list[RowDifference] = []


@compute.command("import")
def import_(
    context: typer.Context,
    nova_conf: NovaConf = None,
    api_database: ApiDatabase = None,
    cell_database: CellDatabases = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave behind what can't come over, and can be left.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count, and list what stays.")] = False,
    as_json: Json = False,
) -> None:
    """Bring all of a Nova's cloud over: flavors, keys, groups, aggregates, quotas, hosts, servers.

    Nova's databases are only read. Its API has to be stopped before, its guests run on. What can't come over
    is listed, and nothing is written unless it may stay behind. All is written at once, and only if both
    sides are the same then. Placement comes by `moorage-manage placement import`.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf compute import --nova-conf nova.conf
    """
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    try:
        with nova_source.opened(addresses(nova_conf, api_database, cell_database)) as source:
            found = survey.look(source)
            if not as_json:
                _show(found)
            blocking = found.remainders.blocking(leave_out=leave_out)
            if dry_run or blocking:
                _finish(ImportReport(dry_run, False, found.counts, found.remainders.found), as_json)
                _refuse(blocking)
                return
            with bar(quiet=as_json) as progress:
                differences = writing.write(database, source, found, progress)
    except TakeoverError as error:
        raise CommandError(str(error)) from error
    report = ImportReport(dry_run, not differences, found.counts, found.remainders.found, differences)
    _finish(report, as_json)
    if differences:
        raise typer.Exit(1)


def addresses(conf: Path | None, api: str | None, cells: list[str] | None) -> NovaAddresses:
    if conf is None and api is None:
        raise CommandError("say where Nova's databases are: --nova-conf, or --api-database")
    known = NovaAddresses("") if conf is None else nova_source.from_file(conf)
    return NovaAddresses(api or known.api, tuple(cells or ()), known.template)


def _show(found: Survey) -> None:
    for kind, count in found.counts.items():
        typer.echo(f"{kind}: {count}")
    for line in found.remainders.lines():
        typer.echo(line)


def _refuse(blocking: list[Remainder]) -> None:
    """What an operator has to mend, or to leave behind on purpose."""
    if blocking:
        kinds = ", ".join(remainder.kind for remainder in blocking)
        raise CommandError(
            f"nothing was written, because of: {kinds}. Mend it there; what is optional can be left behind "
            "by --leave-out"
        )


def _finish(report: ImportReport, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(report))
        return
    if report.dry_run:
        typer.echo("a dry run: nothing was written")
        return
    for difference in report.differences:
        where = "missing here" if difference.missing else "not as there"
        typer.echo(f"{difference.table}: {difference.row}: {where}")
    if report.differences:
        typer.echo("nothing was written: both sides would not be the same")
    elif report.written:
        typer.echo("imported, compared: no difference")
