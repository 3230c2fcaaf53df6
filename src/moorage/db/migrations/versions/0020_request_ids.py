"""The ids of the request that an operation goes back to: what is logged about it goes by them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.add_column("operations", sa.Column("request_ids", sa.String(128)))
