"""Which releases may run on this schema: written by the newest one that changed it, for all older ones."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.db.tables.metadata import METADATA

schema_support = sa.Table(
    "schema_support",
    METADATA,
    sa.Column("oldest", sa.String(32), primary_key=True),
)
"""One row: the oldest revision whose code may run here."""
