"""How often what rarely changes has changed."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.db.tables.metadata import METADATA

revisions = sa.Table(
    "revisions",
    METADATA,
    sa.Column("subject", sa.String(64), primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
"""A number that grows with every change of a subject, so that readers may keep what they have read."""
