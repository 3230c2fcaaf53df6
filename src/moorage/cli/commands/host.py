"""`moorage host`: empty a host of its servers, dead or alive, and look how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from moorage.cli.commands.drain_options import Auto, Cold, Deadline, Detach, Live, Parallel, seconds, way_of
from moorage.cli.commands.drains import DrainAccess, finish, headline, planned, told
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import Cloud, Data, Json

host = Commands(
    help="Empty hosts of their servers, and let them take servers again."
    "\n\nExample: moorage host drain compute-7 --deadline 2h"
)

Name = Annotated[
    str, typer.Argument(metavar="HOST", help="The host, as `openstack compute service list` has it.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only tell where each server would go, and which of them nowhere.")
]


@host.command()
def drain(
    name: Name,
    live: Live = False,
    cold: Cold = False,
    auto: Auto = False,
    max_parallel: Parallel = 5,
    deadline: Deadline = None,
    dry_run: DryRun = False,
    detach: Detach = False,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Disable a host, and move all its servers elsewhere; cold moves are confirmed.

    What was begun goes on if this command, or any other process, is ended. The exit status is 2 if servers
    stay on the host; what keeps each of them is told.

    Example: moorage host drain compute-7 --deadline 2h --max-parallel 10
    """
    way = way_of(live=live, cold=cold, auto=auto)
    asked = {"host": name, "way": way, "max_parallel": max_parallel, **seconds(deadline)}
    _empty(asked, DrainAccess(cloud, data), dry_run=dry_run, detach=detach, as_json=as_json)


@host.command()
def evacuate(
    name: Name,
    max_parallel: Parallel = 5,
    deadline: Deadline = None,
    dry_run: DryRun = False,
    detach: Detach = False,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Bring the servers of a dead host back elsewhere.

    The host must be down, and must not run anything: fence it first. If it comes back, it removes its copies.

    Example: moorage host evacuate compute-7 --max-parallel 20
    """
    asked = {"host": name, "way": "evacuate", "max_parallel": max_parallel, **seconds(deadline)}
    _empty(asked, DrainAccess(cloud, data), dry_run=dry_run, detach=detach, as_json=as_json)


@host.command()
def status(
    name: Annotated[str | None, typer.Argument(metavar="[HOST]", help="One host, or all.")] = None,
    cloud: Cloud = None,
    data: Data = Path("data"),
    as_json: Json = False,
) -> None:
    """Tell how far the last drain of a host is, or list the last drains of all hosts.

    Example: moorage host status compute-7
    """
    access = DrainAccess(cloud, data)
    if name is None:
        found = access.drains()
        if as_json:
            typer.echo(msgspec.json.encode(found))
        for one in () if as_json else found:
            typer.echo(f"{one.created_at[:19]}  {headline(one)}")
        return
    newest = access.newest(name)
    if as_json:
        typer.echo(msgspec.json.encode(newest))
        return
    for line in told(newest):
        typer.echo(line)


@host.command()
def cancel(name: Name, cloud: Cloud = None, data: Data = Path("data"), as_json: Json = False) -> None:
    """Begin no more moves away from a host; those that are under way go on. The host stays disabled.

    Example: moorage host cancel compute-7
    """
    access = DrainAccess(cloud, data)
    cancelled = access.cancel(access.newest(name))
    typer.echo(msgspec.json.encode(cancelled) if as_json else headline(cancelled))


@host.command()
def undrain(name: Name, cloud: Cloud = None, data: Data = Path("data"), as_json: Json = False) -> None:
    """Cancel what is left of a drain, and let the host take servers again, unless it was disabled before.

    Example: moorage host undrain compute-7
    """
    access = DrainAccess(cloud, data)
    newest = access.newest(name)
    if newest.finished_at is None:
        newest = access.cancel(newest)
    if not newest.disabled_host:
        raise CommandError(
            f"{name} had been disabled before it was drained, and stays so: "
            f"openstack compute service set --enable {name} nova-compute"
        )
    access.enable(name)
    typer.echo(msgspec.json.encode(newest) if as_json else f"{name} takes servers again.")


def _empty(asked: dict[str, Any], access: DrainAccess, *, dry_run: bool, detach: bool, as_json: bool) -> None:
    plan = access.plan(asked)
    if dry_run:
        typer.echo(msgspec.json.encode(plan) if as_json else "\n".join(planned(plan)))
        return
    if not as_json:
        for line in planned(plan, only_staying=True):
            typer.echo(line)
    finish(access.begin(asked), access, detach=detach, as_json=as_json)
