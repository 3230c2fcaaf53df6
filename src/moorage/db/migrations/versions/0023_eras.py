"""Eras: how often the database was restored from a backup."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Timestamp

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "eras",
        sa.Column("era", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("first_operation", sa.BigInteger, nullable=False),
        sa.Column("began_at", Timestamp, nullable=False),
        sa.Column("released_at", Timestamp),
        sa.PrimaryKeyConstraint("era", name="pk_eras"),
    )
