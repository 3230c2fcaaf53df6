"""Locks that are held until the transaction ends."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def is_by_row(connection: Connection) -> bool:
    """On SQLite a writing transaction is alone anyway."""
    return connection.dialect.name == "postgresql"


def by_name(connection: Connection, name: str) -> None:
    """For counting what no single row stands for."""
    if is_by_row(connection):
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))
