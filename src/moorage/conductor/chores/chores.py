"""Work that has to be done every now and then, by one conductor at a time."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.tables.aggregates import chores


def claim(connection: Connection, name: str, *, every: timedelta, lease: timedelta) -> bool:
    """Whether it is time for a chore, and it is ours now.

    Nobody else gets it until it is finished, or until `lease` has passed: then we are taken for dead.
    """
    now = utcnow()
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    mine = (
        dialect.insert(chores)
        .values(name=name, leased_until=now + lease)
        .on_conflict_do_update(
            index_elements=[chores.c.name],
            set_={"leased_until": now + lease},
            where=(chores.c.leased_until <= now)
            & (chores.c.finished_at.is_(None) | (chores.c.finished_at <= now - every)),
        )
        .returning(chores.c.name)
    )
    return connection.execute(mine).first() is not None


def finish(connection: Connection, name: str) -> None:
    now = utcnow()
    connection.execute(
        sa.update(chores).where(chores.c.name == name).values(leased_until=now, finished_at=now)
    )
