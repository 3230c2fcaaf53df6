"""Host aggregates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "aggregates",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "aggregate_hosts",
        sa.Column("aggregate_id", Id, sa.ForeignKey("aggregates.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("host", sa.String(255), primary_key=True, index=True),
    )
    op.create_table(
        "deleted_aggregates",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("deleted_at", Timestamp, nullable=False),
    )
    op.create_table(
        "unmirrored_nodes",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("since", Timestamp, nullable=False),
    )
    op.create_table(
        "chores",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("leased_until", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp),
    )
    op.create_table(
        "revisions",
        sa.Column("subject", sa.String(64), primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
    )
