"""Since when an operation is at its step, why it is tried there again, and that it is to be cancelled."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Timestamp

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.add_column("operations", sa.Column("step_since", Timestamp))
    op.add_column("operations", sa.Column("trouble", sa.Text))
    op.add_column("operations", sa.Column("cancel_reason", sa.Text))
