"""Projects that an image of the built-in catalogue is shared with."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Timestamp

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "image_members",
        sa.Column("image_uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("image_uuid", "project_id", name="pk_image_members"),
        sa.ForeignKeyConstraint(
            ["image_uuid"], ["images.uuid"], name="fk_image_members_image_uuid", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_image_members_project_id", "image_members", ["project_id"])
