"""Errors of a database without the values of the statement: errors are logged, and values may be secrets."""

from __future__ import annotations

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Engine, ExceptionContext

_ABOUT_VALUES = "22"
"""The class of SQLSTATEs whose very message quotes the value that is wrong."""


def watch(engine: Engine) -> None:
    """Redact every error of a statement, before anybody sees it."""

    @sa.event.listens_for(engine, "handle_error")
    def on_error(context: ExceptionContext) -> None:
        error, told = context.original_exception, context.sqlalchemy_exception
        if isinstance(error, psycopg.Error) and told is not None:
            redact(error)
            told.args = (f"({type(error).__module__}.{type(error).__name__}) {error}", *told.args[1:])


def redact(error: psycopg.Error) -> None:
    """Leave the message, and none of the details and contexts that quote rows, keys and what was copied."""
    message = error.diag.message_primary
    if message is None:  # not from the server: the connection's
        return
    about_values = (error.sqlstate or "").startswith(_ABOUT_VALUES)
    error.args = (f"refused a value ({error.sqlstate})" if about_values else message,)
