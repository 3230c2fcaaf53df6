"""Which releases may run on this schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table("schema_support", sa.Column("oldest", sa.String(32), primary_key=True))
