"""A lock by name, for counting what no single row stands for; held until the transaction ends."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def by_name(connection: Connection, name: str) -> None:
    """On SQLite a writing transaction is alone anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))
