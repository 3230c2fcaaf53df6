"""`moorage-manage auth`: the password file of `[auth] strategy = basic`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from moorage.cli import settings
from moorage.cli.embedded.credentials import write_private
from moorage.cli.errors import CommandError, Commands
from moorage.http.auth import hash_password, read_password_file

auth = Commands(
    help="The password file of `[auth] strategy = basic`.\n\nExample: moorage-manage auth set-password admin"
)


@auth.callback()
def group() -> None:
    """Keeps `set-password` a command of its own."""


@auth.command("set-password")
def set_password(
    context: typer.Context,
    user: Annotated[str, typer.Argument(help="The user, who is an administrator unless a role is given.")],
    file: Annotated[
        Path | None,
        typer.Option(help="The password file; by default [auth] basic_auth_file.", show_default=False),
    ] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            help="A role, instead of being an administrator; moorage-agent for hosts. May be given more than"
            " once.",
            show_default=False,
        ),
    ] = None,
    stdin: Annotated[
        bool, typer.Option("--stdin", help="Read the password from standard input, and don't ask.")
    ] = False,
) -> None:
    """Add a user to the password file, or give one another password. Services read it when they start.

    Example: moorage-manage --config-file /etc/moorage/moorage.conf auth set-password admin
    """
    if not user or ":" in user or user.startswith("#") or not user.isprintable():
        raise CommandError("a user's name has no colon in it, and does not begin with #")
    path = file or Path(settings.read(context.obj).auth.basic_auth_file)
    lines = _lines(path)
    password = sys.stdin.readline().rstrip("\n") if stdin else _asked(user)
    if not password:
        raise CommandError("an empty password is refused")
    others = [line for line in lines if not line.startswith(f"{user}:")]
    roles = f":{','.join(role)}" if role else ""
    if not all(name.replace("_", "").replace("-", "").isalnum() and name.isascii() for name in role or []):
        raise CommandError("a role has letters, digits, _ and - in its name")
    _write(path, "\n".join([*others, f"{user}:{hash_password(password)}{roles}", ""]))
    typer.echo(f"{path}: {user} {'added' if len(others) == len(lines) else 'has another password'}")


def _lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    read_password_file(path)  # refuses one that makes no sense
    return path.read_text().splitlines()


def _asked(user: str) -> str:
    return str(typer.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True))


def _write(path: Path, text: str) -> None:
    """A file that is there keeps its owner and its mode: services may run under an account of their own."""
    try:
        if path.exists():
            path.write_text(text)
        else:
            write_private(path, text)
    except OSError as error:
        raise CommandError(f"can't write {path}: {error}") from error
