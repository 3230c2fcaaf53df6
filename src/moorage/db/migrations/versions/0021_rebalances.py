"""What a rebalance is for, and where each of its servers shall go: it is done as a drain is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.add_column("drains", sa.Column("goal", sa.String(16)))
    op.add_column("drained_servers", sa.Column("source_host", sa.String(255)))
    op.add_column("drained_servers", sa.Column("target_host", sa.String(255)))
