"""Errors that an operator can mend are told in a sentence, not in a traceback."""

from __future__ import annotations

import sys
from typing import Any

import typer

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
    """A group of commands that share our manners: help by default, and plain words for expected errors."""

    def __init__(self, *, help: str) -> None:
        super().__init__(
            help=help,
            no_args_is_help=True,
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            return super().__call__(*args, **options)
        except expected() as error:
            print(f"error: {sentence(error)}", file=sys.stderr)
            sys.exit(1)
