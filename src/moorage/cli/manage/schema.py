"""`moorage-manage db`: the schema, and rows that follow it."""

from __future__ import annotations

import json

import typer

from moorage.cli import settings
from moorage.cli.errors import CommandError, Commands
from moorage.cli.manage.online_data_migrations import online_data_migrations
from moorage.cli.manage.purge import purge
from moorage.cli.manage.restored import backup, restored
from moorage.cli.options import Json
from moorage.db import engine, large_indexes, migrate, schema_fit
from moorage.db.migrate import SchemaTooNewError, Synced
from moorage.db.schema_fit import SYNC, Fit, SchemaFit

schema = Commands(help="The database's schema.\n\nExample: moorage-manage db version --json")


@schema.command()
def sync(context: typer.Context) -> None:
    """Bring the schema to the version that this release makes. Safe to run again at any time.

    Processes of this release and of the one before go on meanwhile. A newer schema is left as it is.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf db sync
    """
    connected = engine.from_conf(settings.read(context.obj))
    try:
        done = migrate.sync(connected)
    except SchemaTooNewError as error:
        raise CommandError(str(error)) from error
    typer.echo(_told(done, schema_fit.look(connected)))


def _told(done: Synced, found: SchemaFit) -> str:
    if found.fit is Fit.NEWER:
        return f"schema {found.found}: nothing to do: it {found.sentence}"
    built = f", built {', '.join(done.indexes)}" if done.indexes else ""
    if done.waits_for:
        waits = ", ".join(done.waits_for)
        built += f"; the rest waits for `moorage-manage db online-data-migrations` ({waits})"
    if done.before == done.after:
        return f"schema {done.after}{built or ': nothing to do'}"
    return f"schema {done.before or 'empty'} -> {done.after}{built}"


@schema.command()
def version(
    context: typer.Context,
    as_json: Json = False,
) -> None:
    """Show the schema that the database has, and whether this release may run on it.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf db version --json
    """
    connected = engine.from_conf(settings.read(context.obj))
    found = schema_fit.look(connected)
    unbuilt = large_indexes.missing(connected, large_indexes.wanted(found.found or ""))
    if as_json:
        shown = {
            "version": found.found,
            "needed": found.needed,
            "newest": found.newest,
            "oldest": found.oldest,
            "fit": found.fit.value,
            "current": found.found == found.newest,
            "missing_indexes": unbuilt,
        }
        typer.echo(json.dumps(shown))
        return
    state = "up to date" if found.found == found.newest else f"it {found.sentence}"
    if unbuilt:
        state += f"; indexes are still to be built: {', '.join(unbuilt)}: {SYNC}"
    typer.echo(f"{found.found or 'empty'} ({state})")


schema.command()(purge)
schema.command()(online_data_migrations)
schema.command()(restored)
schema.command()(backup)
