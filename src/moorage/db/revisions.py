"""Numbers that grow with every change of a subject, so that readers may keep what they have read."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from moorage.db.tables.aggregates import revisions

_NOW = sa.select(revisions.c.subject, revisions.c.revision)


def now(connection: Connection) -> Mapping[str, int]:
    """By subject; one that never changed has none.

    Ask before reading what is to be kept: a change in between is then seen the next time, not missed.
    """
    return dict(connection.execute(_NOW).all())


def grow(connection: Connection, subject: str) -> None:
    """What is written in this transaction changes `subject`."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    first = dialect.insert(revisions).values(subject=subject, revision=1)
    connection.execute(
        first.on_conflict_do_update(
            index_elements=[revisions.c.subject], set_={"revision": revisions.c.revision + 1}
        )
    )
