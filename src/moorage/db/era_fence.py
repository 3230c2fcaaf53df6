"""A process ends with the era of its database: what it remembers says nothing in another one."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from moorage.db.tables.eras import FIRST

LOG = logging.getLogger(__name__)

ENDED = 75
"""What a process leaves with whose era has ended: try again (`EX_TEMPFAIL`), with what is there now."""
_NUMBER = "SELECT max(era) FROM eras"


def _leave() -> None:
    os._exit(ENDED)


def watch(engine: Engine, leave: Callable[[], None] = _leave) -> None:
    """End the process, by `leave`, when it meets the database in another era than its own.

    Each new connection looks, and a restore ends all that there were. So what a process remembers of an
    earlier era, a lease or a picture, is never written into this one, however late it wakes up.
    """
    lock = threading.Lock()
    met: list[int] = []

    @sa.event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        number = _read(engine, connection)
        with lock:
            if not met:
                met.append(number)
        if number != met[0]:
            LOG.critical(
                "the database was restored (era %d, it was %d): this process ends, to begin with what is "
                "there now",
                number,
                met[0],
            )
            leave()
            raise engine.dialect.loaded_dbapi.OperationalError("the database is another one than before")


def _read(engine: Engine, connection: Any) -> int:
    """Before there is a schema, too."""
    try:
        row = connection.execute(_NUMBER).fetchone()
        return int(row[0] or FIRST)
    except engine.dialect.loaded_dbapi.Error as error:
        if not _has_no_table(error):
            raise
        return FIRST
    finally:
        if engine.dialect.name == "postgresql":
            connection.rollback()


def _has_no_table(error: Exception) -> bool:
    return getattr(error, "sqlstate", None) == "42P01" or "no such table" in str(error)
