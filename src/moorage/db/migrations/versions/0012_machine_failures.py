"""Failures of machines, and which machines are kept out for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Timestamp

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "machine_failures",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("machine_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("image_ref", sa.String(255), nullable=False),
        sa.Column("step", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("failed_at", Timestamp, nullable=False),
        sa.Column("forgiven_at", Timestamp),
    )
    op.create_index("ix_machine_failures_machine", "machine_failures", ["machine_uuid", "failed_at"])
    op.create_index("ix_machine_failures_failed_at", "machine_failures", ["failed_at"])
    op.create_table(
        "quarantined_machines",
        sa.Column("machine_uuid", sa.String(36), primary_key=True),
        sa.Column("since", Timestamp, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
    )
