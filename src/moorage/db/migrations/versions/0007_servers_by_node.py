"""Servers by the node that they are on: every decision counts those of its candidates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None
kind = "expand"

_LIVES = sa.text("deleted_at IS NULL")


def upgrade() -> None:
    op.create_index("ix_servers_node", "servers", ["node_uuid"], postgresql_where=_LIVES, sqlite_where=_LIVES)
