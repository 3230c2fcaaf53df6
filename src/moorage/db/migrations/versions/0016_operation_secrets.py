"""What agents have to know for an operation, and nobody else may; it is erased when the operation ends."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.add_column("operations", sa.Column("secrets", sa.JSON(none_as_null=True)))
