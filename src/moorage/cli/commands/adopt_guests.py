"""`moorage adopt-guests`: guests that Nova has left running on this machine become ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from moorage.cli import settings
from moorage.cli.errors import CommandError
from moorage.cli.options import ConfigFiles, Json
from moorage.core import private
from moorage.drivers import installed
from moorage.drivers.contract import DriverError


def adopt_guests(
    config_file: ConfigFiles = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be adopted.")] = False,
    as_json: Json = False,
) -> None:
    """Make the guests of a Nova on this machine ours, after `moorage-manage compute import`.

    To be run on the host, with its agent's configuration, once nova-compute is stopped. Guests run on and are
    not touched: each gets a record in its directory, and a mark in its domain. Safe to run again. The exit
    status is 1 if there are guests that can't be adopted; they stay as they are.

    Example: moorage adopt-guests --config-file /etc/moorage/agent.conf --dry-run
    """
    conf = settings.read(config_file)
    plugin = installed.find(conf.agent.driver)
    if plugin.adopt is None:
        raise CommandError(f"the driver {conf.agent.driver} has nothing to adopt")
    directory = Path(conf.agent.state_directory)
    try:
        private.directory(directory, plugin.files)
        found = plugin.adopt(conf, directory, dry_run=dry_run)
    except (OSError, DriverError) as error:
        raise CommandError(str(error)) from error
    if as_json:
        typer.echo(msgspec.json.encode({"dry_run": dry_run, "guests": found}))
    else:
        done = "can be adopted" if dry_run else "adopted"
        for guest in found:
            said = f"stays as it is: {guest.refusal}" if guest.refusal else done
            typer.echo(f"{guest.server_uuid} {guest.name}: {said}")
        typer.echo(f"{sum(not guest.refusal for guest in found)} of {len(found)} guests of Nova's")
        if dry_run:
            typer.echo("a dry run: nothing was changed")
    if any(guest.refusal for guest in found):
        raise typer.Exit(1)
