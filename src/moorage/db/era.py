"""The era of the database: a number that grows each time that the database is restored from a backup.

What somebody remembers of an earlier era (a process of its tables, an agent of its tasks) says nothing in
this one. So nobody takes an era for another: a process belongs to that in which it first met the database.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.eras import FIRST, eras


class Era(NamedTuple):
    number: int = FIRST
    first_operation: int = 0
    """Operations before it were written down in an earlier era."""
    began_at: datetime | None = None
    is_held: bool = False
    """Nobody has said yet that what the database does not know may be taken away."""

    @property
    def least(self) -> int:
        """The first operation that may go on: what was under way at the time of the backup may have been
        done since, so it waits for the release."""
        return self.first_operation if self.is_held else 0


def current(connection: Connection) -> Era:
    row = connection.execute(sa.select(eras).order_by(eras.c.era.desc()).limit(1)).first()
    if row is None:
        return Era()
    return Era(row.era, row.first_operation, row.began_at, row.released_at is None)


def begin(connection: Connection, first_operation: int) -> Era:
    """A new one. The clock is in it, so that it is another one than that which a newer backup has."""
    number = max(current(connection).number + 1, int(time.time()))
    connection.execute(sa.insert(eras).values(era=number, first_operation=first_operation))
    return current(connection)


def release(connection: Connection) -> bool:
    """Whether the era was held until now."""
    held = sa.update(eras).where(eras.c.released_at.is_(None)).values(released_at=utcnow())
    return connection.execute(held).rowcount > 0


class KnownEra:
    """The era of a process: it does not change, but for its release."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: Era | None = None

    def now(self) -> Era:
        """Asked as long as it is held; after that, nothing about it changes."""
        if self._known is None or self._known.is_held:
            with self._database.read() as connection:
                self._known = current(connection)
        return self._known

    @property
    def number(self) -> int:
        return self.now().number if self._known is None else self._known.number
