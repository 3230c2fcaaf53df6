"""Work that has to be done every now and then, by one conductor at a time."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.core.clock import utcnow
from moorage.db.tables.aggregates import chores
from moorage.db.upsert import insert_if_absent, upsert


def claim(connection: Connection, name: str, *, every: timedelta, lease: timedelta) -> bool:
    """Whether it is time for a chore, and it is ours now.

    Nobody else gets it until it is finished, or until `lease` has passed: then we are taken for dead.
    """
    now = utcnow()
    is_free = chores.c.leased_until <= now
    is_time = chores.c.finished_at.is_(None) | (chores.c.finished_at <= now - every)
    claimed = upsert(connection, chores, ["name"], renewed=["leased_until"], only_if=is_free & is_time)
    mine = claimed.values(name=name, leased_until=now + lease).returning(chores.c.name)
    return connection.execute(mine).first() is not None


def count_from_now(connection: Connection, name: str) -> None:
    """One that nobody has done yet counts as just done."""
    now = utcnow()
    connection.execute(
        insert_if_absent(connection, chores, ["name"]).values(name=name, leased_until=now, finished_at=now)
    )


def forget_leases(connection: Connection) -> None:
    """For a process that has the database to itself and has just started: whoever was at one is dead."""
    connection.execute(sa.update(chores).values(leased_until=utcnow()))


def renew(connection: Connection, name: str, lease: timedelta) -> None:
    """We are still at it."""
    connection.execute(sa.update(chores).where(chores.c.name == name).values(leased_until=utcnow() + lease))


def finish(connection: Connection, name: str) -> None:
    now = utcnow()
    connection.execute(
        sa.update(chores).where(chores.c.name == name).values(leased_until=now, finished_at=now)
    )
