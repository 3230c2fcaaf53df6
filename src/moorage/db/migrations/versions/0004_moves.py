"""Moves of servers from host to host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "migrations",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column(
            "server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("server_uuid", sa.String(36), nullable=False, index=True),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("source_host", sa.String(255), nullable=False),
        sa.Column("source_node", sa.String(255), nullable=False),
        sa.Column("source_node_uuid", sa.String(36), nullable=False),
        sa.Column("dest_host", sa.String(255)),
        sa.Column("dest_node", sa.String(255)),
        sa.Column("dest_node_uuid", sa.String(36)),
        sa.Column("dest_address", sa.String(255)),
        sa.Column("old_flavor", sa.JSON, nullable=False),
        sa.Column("new_flavor", sa.JSON, nullable=False),
        sa.Column("old_flavor_id", Id),
        sa.Column("new_flavor_id", Id),
        sa.Column("old_state", sa.String(32), nullable=False),
        sa.Column("reserved", sa.JSON, nullable=False),
        sa.Column("wish", sa.String(16)),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Index("ix_migrations_listing", "created_at", "id"),
    )
