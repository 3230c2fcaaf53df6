"""Audits, and what they have found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    op.create_table(
        "audits",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("checks", sa.JSON, nullable=False),
        sa.Column("repair", sa.String(8), nullable=False),
        sa.Column("asked_by", sa.String(255), nullable=False),
        sa.Column("stage", sa.String(16), nullable=False),
        sa.Column("at_check", sa.String(32), nullable=False),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("failures", sa.JSON, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp, index=True),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audit_findings",
        sa.Column("id", Id, primary_key=True),
        sa.Column("check_name", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(255), nullable=False),
        sa.Column("sentence", sa.Text, nullable=False),
        sa.Column("remedy", sa.Text, nullable=False),
        sa.Column("safe", sa.Boolean, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False),
        sa.Column("suspect", sa.JSON, nullable=False),
        sa.Column("first_seen_at", Timestamp, nullable=False),
        sa.Column("seen_at", Timestamp, nullable=False),
        sa.Column("confirmed_at", Timestamp),
        sa.Column("ended_at", Timestamp, index=True),
        sa.Column("ending", sa.String(16)),
        sa.Column("error", sa.Text, nullable=False),
        sa.UniqueConstraint("check_name", "subject", name="uq_audit_findings_subject"),
        sqlite_autoincrement=True,
    )
