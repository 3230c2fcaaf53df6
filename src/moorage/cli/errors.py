"""Errors that an operator can mend are told in a sentence, not in a traceback."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer import completion

from moorage.cli.version import release
from moorage.core.config import ConfigError


class CommandError(Exception):
    """Why a command can't do what it was asked to."""


def expected() -> tuple[type[Exception], ...]:
    """What an operator can mend; asked for when something was raised, since a process without a database,
    such as an agent, starts in two thirds of the time without the library."""
    if "sqlalchemy" not in sys.modules:
        return (ConfigError, CommandError)
    from sqlalchemy.exc import OperationalError

    return (ConfigError, CommandError, OperationalError)


def sentence(error: Exception) -> str:
    """One of those in plain words."""
    if isinstance(error, ConfigError | CommandError):
        return str(error)
    return f"the database can't be reached: {getattr(error, 'orig', error)}"


class Commands(typer.Typer):
    """A group of commands that share our manners: help by default, a version, and plain words for expected
    errors."""

    def __init__(self, *, help: str) -> None:
        super().__init__(
            help=help,
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        if any(name.endswith("_COMPLETE") for name in os.environ):  # a shell asks what could be typed next
            completion.completion_init()  # type: ignore[attr-defined]
        try:
            return self.program()(*args, **options)
        except expected() as error:
            print(f"error: {sentence(error)}", file=sys.stderr)
            sys.exit(1)

    def program(self) -> Any:
        """What stands at the top of a command line."""
        command = typer.main.get_command(self)
        command.params.append(_version_option())
        return command


def _version_option() -> Any:
    """As Typer makes it of a signature: programs of one command, and groups of them, have it alike."""
    bearer = typer.Typer(add_completion=False)

    @bearer.command()
    def _bear(
        version: Annotated[
            bool, typer.Option("--version", help="Show the release, and exit.", is_eager=True, callback=_show)
        ] = False,
    ) -> None:
        pass

    option = typer.main.get_command(bearer).params[0]
    option.expose_value = False
    return option


def _show(context: typer.Context, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        typer.echo(f"{context.find_root().info_name} {release()}")
        raise typer.Exit
