"""Audits: what was asked for, and what was found to differ."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Id, Timestamp

audits = sa.Table(
    "audits",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("checks", sa.JSON, nullable=False, default=list),
    sa.Column("repair", sa.String(8), nullable=False),
    sa.Column("asked_by", sa.String(255), nullable=False, default=""),
    sa.Column("stage", sa.String(16), nullable=False),
    sa.Column("at_check", sa.String(32), nullable=False, default=""),
    sa.Column("done", sa.Integer, nullable=False, default=0),
    sa.Column("total", sa.Integer, nullable=False, default=0),
    sa.Column("failures", sa.JSON, nullable=False, default=dict),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("finished_at", Timestamp, index=True),
    sqlite_autoincrement=True,
)
"""`checks` are those asked for, none for all. `at_check`, `done` and `total` are how far it is; `failures`
says of checks that could not be made why. An empty `asked_by` is a conductor that does it by itself."""

audit_findings = sa.Table(
    "audit_findings",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("check_name", sa.String(32), nullable=False),
    sa.Column("subject", sa.String(255), nullable=False),
    sa.Column("fingerprint", sa.String(255), nullable=False, default=""),
    sa.Column("sentence", sa.Text, nullable=False),
    sa.Column("remedy", sa.Text, nullable=False, default=""),
    sa.Column("safe", sa.Boolean, nullable=False, default=False),
    sa.Column("host", sa.String(255), nullable=False, default=""),
    sa.Column("server_uuid", sa.String(36), nullable=False, default=""),
    sa.Column("suspect", sa.JSON, nullable=False, default=dict),
    sa.Column("first_seen_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("seen_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("confirmed_at", Timestamp),
    sa.Column("ended_at", Timestamp, index=True),
    sa.Column("ending", sa.String(16)),
    sa.Column("error", sa.Text, nullable=False, default=""),
    sa.UniqueConstraint("check_name", "subject", name="uq_audit_findings_subject"),
    sqlite_autoincrement=True,
)
"""A row for each thing that differs or did. One that has another `fingerprint` is another drift.
`confirmed_at` is when it was seen again after the grace period: before that it may be what is merely under
way. `ending` is how it ended: `repaired` by an audit, or `gone` by itself. `error` is why a repair failed."""
