"""`moorage-manage`: what an operator does to the database, to the first things in it, and to passwords."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from moorage.cli import settings
from moorage.cli.embedded import seeding
from moorage.cli.errors import Commands
from moorage.cli.manage import sync_aggregates
from moorage.cli.manage.consoles import consoles
from moorage.cli.manage.ironic import ironic
from moorage.cli.manage.passwords import auth
from moorage.cli.manage.purge import purge
from moorage.cli.options import ConfigFiles, Json
from moorage.cli.processes.workers import require_current_schema
from moorage.db import engine, migrate
from moorage.db.database import Database

commands = Commands(
    help="Manage Moorage's database.\n\nExample: moorage-manage --config-file moorage.conf db sync"
)
database = Commands(help="The database's schema.\n\nExample: moorage-manage db version --json")
commands.add_typer(database, name="db")
commands.add_typer(sync_aggregates.placement, name="placement")
commands.add_typer(ironic, name="ironic")
commands.add_typer(auth, name="auth")
commands.add_typer(consoles, name="consoles")


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


database.command()(purge)


@commands.command()
def seed(
    context: typer.Context,
    flavors: Annotated[bool, typer.Option("--flavors", help="The five usual flavors.")] = False,
    images: Annotated[bool, typer.Option("--images", help="The images of the built-in catalogue.")] = False,
    as_json: Json = False,
) -> None:
    """Put flavors and catalogue images into a new cloud; both, unless one is named.

    What is there already stays as it is, so it is safe to run again at any time.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf seed --images
    """
    conf = settings.read(context.obj)
    require_current_schema(conf)
    opened = Database(engine.from_conf(conf))
    everything = not (flavors or images)
    made: dict[str, list[str]] = {}
    if flavors or everything:
        made["flavors"] = seeding.seed_flavors(opened)
    if images or everything:
        made["images"] = seeding.seed_images(opened)
    if as_json:
        typer.echo(json.dumps(made))
        return
    for kind, names in made.items():
        typer.echo(f"{kind}: {', '.join(names) or 'nothing to do'}")


def main() -> None:
    commands()
