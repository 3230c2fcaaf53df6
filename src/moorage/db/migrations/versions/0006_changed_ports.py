"""Servers whose ports have changed in the network service."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Timestamp

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "changed_ports",
        sa.Column("server_uuid", sa.String(36), primary_key=True),
        sa.Column("since", Timestamp, nullable=False),
    )
