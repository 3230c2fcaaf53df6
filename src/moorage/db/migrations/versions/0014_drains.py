"""Hosts that are being drained, and what becomes of their servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "drains",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("way", sa.String(16), nullable=False),
        sa.Column("max_parallel", sa.Integer, nullable=False),
        sa.Column("deadline_at", Timestamp),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("disabled_host", sa.Boolean, nullable=False),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_drains_host", "drains", ["host"])
    op.create_index("ix_drains_finished_at", "drains", ["finished_at"])
    op.create_table(
        "drained_servers",
        sa.Column("drain_id", Id, nullable=False),
        sa.Column("server_id", Id, nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("move", sa.String(16)),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("due_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("drain_id", "server_id", name="pk_drained_servers"),
        sa.ForeignKeyConstraint(
            ["drain_id"], ["drains.id"], name="fk_drained_servers_drain_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["server_id"], ["servers.id"], name="fk_drained_servers_server_id", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_drained_servers_server_id", "drained_servers", ["server_id"])
