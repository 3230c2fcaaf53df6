"""Deleted servers are found by when they were deleted, to be purged."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    is_deleted = sa.text("deleted_at IS NOT NULL")
    op.create_index(
        "ix_servers_deleted",
        "servers",
        ["deleted_at"],
        postgresql_where=is_deleted,
        sqlite_where=is_deleted,
    )
