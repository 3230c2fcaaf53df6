"""`moorage-manage consoles`: what an operator does about who sees the consoles of servers."""

from __future__ import annotations

from typing import Annotated

import typer

from moorage.cli import settings
from moorage.cli.errors import CommandError, Commands
from moorage.cli.processes.workers import require_fitting_schema
from moorage.compute.consoles import tokens
from moorage.db import engine
from moorage.db.database import Database

consoles = Commands(
    help="The consoles of servers.\n\nExample: moorage-manage consoles close "
    "6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e"
)


@consoles.callback()
def group() -> None:
    """The consoles of servers."""


@consoles.command()
def close(
    context: typer.Context, server: Annotated[str, typer.Argument(help="The UUID of a server.")]
) -> None:
    """Close all consoles of a server, and take back the URLs that were given out for them.

    For a URL that has come into wrong hands. Who may ask for consoles gets a new one.

    Example: moorage-manage consoles close 6f0c2f2e-6c5f-4f0a-9d51-0a4b7f1c2d3e
    """
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    database = Database(engine.from_conf(conf))
    count = database.transact(lambda connection: tokens.revoke(connection, server))
    if count is None:
        raise CommandError(f"there is no server {server}")
    seconds = conf.consoles.check_interval
    typer.echo(f"{count} URLs taken back; what is open closes within {seconds:g} s")
