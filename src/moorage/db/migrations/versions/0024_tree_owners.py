"""Tree owners: which agent's user a tree of providers belongs to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "tree_owners",
        sa.Column("root_id", Id, nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("since", Timestamp, nullable=False),
        sa.PrimaryKeyConstraint("root_id", name="pk_tree_owners"),
        sa.ForeignKeyConstraint(
            ["root_id"], ["providers.id"], name="fk_tree_owners_root_id", ondelete="CASCADE"
        ),
    )
