"""`moorage-manage`: what an operator does to the database."""

from __future__ import annotations

import json

import typer

from moorage.cli import settings
from moorage.cli.errors import Commands
from moorage.cli.options import ConfigFiles, Json
from moorage.db import engine, migrate

commands = Commands(
    help="Manage Moorage's database.\n\nExample: moorage-manage --config-file moorage.conf db sync"
)
database = Commands(help="The database's schema.\n\nExample: moorage-manage db version --json")
commands.add_typer(database, name="db")


@commands.callback()
def options(context: typer.Context, config_file: ConfigFiles = None) -> None:
    context.obj = config_file


@database.command()
def sync(context: typer.Context) -> None:
    """Bring the schema to the version that this release needs. Safe to run again at any time.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf db sync
    """
    connected = engine.from_conf(settings.read(context.obj))
    before = migrate.version(connected)
    migrate.sync(connected)
    after = migrate.version(connected)
    typer.echo(
        f"schema {after}: nothing to do" if before == after else f"schema {before or 'empty'} -> {after}"
    )


@database.command()
def version(
    context: typer.Context,
    as_json: Json = False,
) -> None:
    """Show the schema that the database has, and the one that this release needs.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf db version --json
    """
    found = migrate.version(engine.from_conf(settings.read(context.obj)))
    needed = migrate.newest()
    if as_json:
        typer.echo(json.dumps({"version": found, "needed": needed, "current": found == needed}))
    else:
        state = (
            "up to date" if found == needed else f"this release needs {needed}: run `moorage-manage db sync`"
        )
        typer.echo(f"{found or 'empty'} ({state})")


def main() -> None:
    commands()
