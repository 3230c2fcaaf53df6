"""`moorage-manage`: what an operator does to the database, to the first things in it, and to passwords."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from moorage.cli import settings
from moorage.cli.embedded import seeding
from moorage.cli.errors import Commands
from moorage.cli.manage import compute_compare, placement_takeover, sync_aggregates, tree_owners
from moorage.cli.manage.agents import agent
from moorage.cli.manage.compute_import import compute
from moorage.cli.manage.consoles import consoles
from moorage.cli.manage.install_files import install_files
from moorage.cli.manage.ironic import ironic
from moorage.cli.manage.passwords import auth
from moorage.cli.manage.schema import schema
from moorage.cli.options import ConfigFiles, Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.db import engine
from moorage.db.database import Database

commands = Commands(
    help="Manage Moorage's database.\n\nExample: moorage-manage --config-file moorage.conf db sync"
)
commands.add_typer(schema, name="db")
commands.add_typer(sync_aggregates.placement, name="placement")
sync_aggregates.placement.command("import")(placement_takeover.bring)
sync_aggregates.placement.command("export")(placement_takeover.send)
sync_aggregates.placement.command("compare")(placement_takeover.compare)
sync_aggregates.placement.command("owners")(tree_owners.owners)
sync_aggregates.placement.command("set-owner")(tree_owners.set_owner)
sync_aggregates.placement.command("unset-owner")(tree_owners.unset_owner)
commands.add_typer(compute, name="compute")
compute.command("compare")(compute_compare.compare)
commands.add_typer(ironic, name="ironic")
commands.add_typer(auth, name="auth")
commands.add_typer(consoles, name="consoles")
commands.add_typer(agent, name="agent")
commands.command()(install_files)


@commands.callback()
def options(context: typer.Context, config_file: ConfigFiles = None) -> None:
    context.obj = config_file


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
    require_fitting_schema(conf)
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
