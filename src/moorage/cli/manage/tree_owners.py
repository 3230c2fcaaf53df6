"""`moorage-manage placement owners`, `set-owner`, `unset-owner`: which agent may write to which providers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from moorage.cli import settings
from moorage.cli.errors import CommandError
from moorage.cli.options import Json
from moorage.cli.processes.workers import require_fitting_schema
from moorage.db import engine
from moorage.db.database import Database
from moorage.placement import owned_trees
from moorage.placement.owned_trees import NoSuchTreeError

Trees = Annotated[
    list[str] | None,
    typer.Argument(help="Root providers, by name or UUID.", show_default=False),
]
OfUser = Annotated[
    str | None,
    typer.Option("--of", metavar="USER", help="All that belong to this user.", show_default=False),
]


def owners(
    context: typer.Context,
    unowned: Annotated[bool, typer.Option("--unowned", help="Only those that belong to nobody.")] = False,
    as_json: Json = False,
) -> None:
    """List the trees of providers, and the users of agents that they belong to.

    A tree is named by its root; children belong to whom their root does. Placement keeps this up if
    [placement] tree_owners says so. Users are told by their ids, as Keystone has them; with password files,
    by their names.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf placement owners --unowned
    """
    found = owned_trees.listed(_database(context), unowned=unowned)
    if as_json:
        rows = [
            {"uuid": tree.uuid, "name": tree.name, "user": tree.user_id, "since": tree.since}
            for tree in found
        ]
        typer.echo(msgspec.json.encode({"trees": rows}))
        return
    tree = None
    for tree in found:
        typer.echo(f"{tree.uuid}  {tree.user_id or '-'}  {tree.name}")
    if tree is None:
        typer.echo("there are none")


def set_owner(
    context: typer.Context,
    user: Annotated[str, typer.Option("--user", help="The id of the user that they shall belong to.")],
    trees: Trees = None,
    of_user: OfUser = None,
    as_json: Json = False,
) -> None:
    """Give trees of providers to the user of another agent, whosever they are.

    As after a host got another user, or if a first report was not by the agent that the tree is of.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf placement set-owner --user
    3f0c7d52b8a94e36a1c4e09b5d2fa863 rack-7-node-1
    """
    changed = _change(context, trees, of_user, lambda db, names: owned_trees.give(db, names, user, of_user))
    _tell(changed, user, as_json)


def unset_owner(
    context: typer.Context, trees: Trees = None, of_user: OfUser = None, as_json: Json = False
) -> None:
    """Take trees of providers from the agents that they belong to: no agent's any more.

    With [placement] tree_owners = record the next agent that writes to one gets it.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf placement unset-owner rack-7-node-1
    """
    changed = _change(context, trees, of_user, lambda db, names: owned_trees.take(db, names, of_user))
    _tell(changed, None, as_json)


def _database(context: typer.Context) -> Database:
    conf = settings.read(context.obj)
    require_fitting_schema(conf)
    return Database(engine.from_conf(conf))


def _change(
    context: typer.Context,
    trees: list[str] | None,
    of_user: str | None,
    work: Callable[[Database, list[str]], list[str]],
) -> list[str]:
    if not trees and of_user is None:
        raise CommandError("no trees are named: by their roots, or by --of USER")
    try:
        return work(_database(context), trees or [])
    except NoSuchTreeError as error:
        raise CommandError(str(error)) from error


def _tell(changed: list[str], user: str | None, as_json: bool) -> None:
    if as_json:
        typer.echo(msgspec.json.encode({"trees": changed, "user": user}))
        return
    for uuid in changed:
        typer.echo(f"{uuid}  {user or '-'}")
    if not changed:
        typer.echo("there are none")
