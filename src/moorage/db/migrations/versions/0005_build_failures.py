"""How many builds in a row a node has failed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.add_column("nodes", sa.Column("build_failures", sa.Integer, nullable=False, server_default="0"))
