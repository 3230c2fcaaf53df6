"""How often the database was restored from a backup."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Timestamp

FIRST = 1
"""The era of a database that was never restored."""

eras = sa.Table(
    "eras",
    METADATA,
    sa.Column("era", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("first_operation", sa.BigInteger, nullable=False),
    sa.Column("began_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("released_at", Timestamp),
)
"""A row for each time; none before the first. Operations from `first_operation` on were written down since.
Until `released_at`, nothing is taken away from hosts because the database does not know it."""
