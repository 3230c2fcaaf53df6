"""Tokens for the consoles of servers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "console_tokens",
        sa.Column("id", Id, primary_key=True),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("server_id", Id, nullable=False),
        sa.Column("server_host", sa.String(255), nullable=False),
        sa.Column("node_uuid", sa.String(36), nullable=False),
        sa.Column("console_type", sa.String(16), nullable=False),
        sa.Column("address", sa.String(255), nullable=False),
        sa.Column("port", sa.Integer, nullable=False),
        sa.Column("path", sa.String(255), nullable=False),
        sa.Column("base_url", sa.String(255), nullable=False),
        sa.Column("expires_at", Timestamp, nullable=False),
        sa.Column("used_at", Timestamp),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.ForeignKeyConstraint(
            ["server_id"], ["servers.id"], name="fk_console_tokens_server_id", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("token_hash", name="uq_console_tokens_token_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_console_tokens_server_id", "console_tokens", ["server_id"])
    op.create_index("ix_console_tokens_expires_at", "console_tokens", ["expires_at"])
