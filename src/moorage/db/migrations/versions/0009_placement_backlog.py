"""What Placement has to be told once more, or could not be told yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Timestamp

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "placement_backlog",
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("since", Timestamp, nullable=False),
        sa.Column("due_at", Timestamp, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
    )
