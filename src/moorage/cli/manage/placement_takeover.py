"""`moorage-manage placement import`, `export`, `compare`: coming over from the reference, and going back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

import msgspec
import typer

from moorage.cli import settings
from moorage.cli.errors import CommandError
from moorage.cli.manage.takeover_bar import bar
from moorage.cli.options import Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.db import engine
from moorage.db.database import Database
from moorage.placement.takeover import moving
from moorage.placement.takeover.comparison import Comparison
from moorage.placement.takeover.moving import MoveResult, Takeover
from moorage.placement.takeover.reference_tables import READABLE
from moorage.takeover.errors import TakeoverError
from moorage.takeover.foreign import ForeignDatabase
from moorage.takeover.progress import Progress

REFUSED = 1
DIFFERENT = 7
"""Exit codes; the second as that of `sync_aggregates`."""
_URL = (
    "As [placement_database] connection in the reference's placement.conf: sqlite:////FILE, "
    "postgresql://USER:PASSWORD@HOST/NAME, mysql://USER:PASSWORD@HOST/NAME."
)
_VARIABLE = "MOORAGE_REFERENCE_DATABASE"

T = TypeVar("T")
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count, and tell what can't go over.")]


def bring(
    context: typer.Context,
    source: Annotated[str, typer.Option("--from", metavar="URL", envvar=_VARIABLE, help=_URL)],
    dry_run: DryRun = False,
    leave_out: Annotated[
        bool,
        typer.Option("--leave-out", help="Leave behind what is told to be optional, instead of refusing."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Bring all that the reference's Placement holds over to ours, which is empty, exactly.

    Providers, inventories, traits, aggregates, resource classes, consumers and allocations, with their
    generations. What can't come over is told before anything is written. All of it is one transaction,
    which is committed only if both sides have the same; so it can be run again at any time. Stop the
    reference's service before, so that nobody writes to it meanwhile.

    Exit codes: 0 both sides are the same (or a dry run found nothing against it); 1 nothing was written;
    2 wrong usage.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf placement import --from
    postgresql://placement:secret@db/placement --dry-run
    """

    def work(foreign: ForeignDatabase, database: Database, progress: Progress) -> Takeover:
        return moving.bring(foreign, database, dry_run=dry_run, leave_out=leave_out, progress=progress)

    _finish(_run(context, source, work, as_json), as_json, "imported")


def send(
    context: typer.Context,
    target: Annotated[str, typer.Option("--to", metavar="URL", envvar=_VARIABLE, help=_URL)],
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Bring all that our Placement holds back to a database of the reference, which is empty, exactly.

    The reference's own `placement-manage db sync` makes the tables first. All of it is one transaction,
    which is committed only if both sides have the same. Stop our Placement's processes before.

    Exit codes: 0 both sides are the same (or a dry run found nothing against it); 1 nothing was written;
    2 wrong usage.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf placement export --to
    postgresql://placement:secret@db/placement
    """

    def work(foreign: ForeignDatabase, database: Database, progress: Progress) -> Takeover:
        return moving.send(database, foreign, dry_run=dry_run, progress=progress)

    _finish(_run(context, target, work, as_json), as_json, "exported")


def compare(
    context: typer.Context,
    reference: Annotated[str, typer.Option("--with", metavar="URL", envvar=_VARIABLE, help=_URL)],
    as_json: Json = False,
) -> None:
    """Tell what differs between the reference's Placement and ours; nothing is written.

    Exit codes: 0 both sides are the same; 1 the command could not run; 2 wrong usage; 7 something differs.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf placement compare --with
    postgresql://placement:secret@db/placement
    """
    found = _run(context, reference, moving.contrast, as_json)
    if as_json:
        typer.echo(msgspec.json.encode({"equal": found.is_equal, **msgspec.to_builtins(found)}))
    else:
        for line in _compared(found):
            typer.echo(line)
    raise typer.Exit(0 if found.is_equal else DIFFERENT)


def _run(
    context: typer.Context,
    url: str,
    work: Callable[[ForeignDatabase, Database, Progress], T],
    as_json: bool,
) -> T:
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    try:
        with ForeignDatabase(url) as foreign, bar(quiet=as_json) as progress:
            return work(foreign, database, progress)
    except TakeoverError as error:
        raise CommandError(str(error)) from error


def _finish(takeover: Takeover, as_json: bool, done: str) -> None:
    if as_json:
        typer.echo(msgspec.json.encode(takeover))
    else:
        for line in _lines(takeover, done):
            typer.echo(line)
    good = takeover.result in (MoveResult.WRITTEN, MoveResult.COUNTED, MoveResult.SAME)
    raise typer.Exit(0 if good else REFUSED)


def _lines(takeover: Takeover, done: str) -> Iterator[str]:
    yield f"the reference's schema: {takeover.revision} ({READABLE[takeover.revision]})"
    for name, count in msgspec.to_builtins(takeover.counts).items():
        yield f"{name.replace('_', ' ')}: {count}"
    yield from takeover.remainders.lines()
    match takeover.result:
        case MoveResult.WRITTEN:
            yield f"{done}; both sides are the same"
        case MoveResult.COUNTED:
            yield "a dry run: nothing was written, and nothing speaks against it"
        case MoveResult.SAME:
            yield "nothing to do: both sides are the same already"
        case MoveResult.BLOCKED:
            yield "nothing was written: see above what can't go over"
        case MoveResult.OCCUPIED:
            yield "nothing was written: the target is not empty, and differs"
        case MoveResult.UNEQUAL:
            yield "nothing was written: what came out was not the same; please report this"
    if takeover.comparison is not None and not takeover.comparison.is_equal:
        yield from _compared(takeover.comparison)


def _compared(found: Comparison) -> Iterator[str]:
    for kind, count in found.compared.items():
        differing = found.differing[kind]
        yield f"{kind}: {count} compared, {f'{differing} differ' if differing else 'all the same'}"
    for difference in found.differences:
        yield f"  {difference.line()}"
    if found.is_equal:
        yield "both sides are the same"
