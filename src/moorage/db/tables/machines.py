"""Machines that failed: what befell them, and which of them are kept out for it."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Timestamp

machine_failures = sa.Table(
    "machine_failures",
    METADATA,
    sa.Column("uuid", sa.String(36), primary_key=True),
    sa.Column("machine_uuid", sa.String(36), nullable=False),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("server_uuid", sa.String(36), nullable=False),
    sa.Column("image_ref", sa.String(255), nullable=False),
    sa.Column("step", sa.String(16), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("failed_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("forgiven_at", Timestamp),
    sa.Index("ix_machine_failures_machine", "machine_uuid", "failed_at"),
    sa.Index("ix_machine_failures_failed_at", "failed_at"),
)
"""The UUID follows from what failed, so that whoever tells it again tells nothing new. `host` is who told it;
`server_uuid` and `image_ref` are empty for what failed without a server, as a cleaning."""

quarantined_machines = sa.Table(
    "quarantined_machines",
    METADATA,
    sa.Column("machine_uuid", sa.String(36), primary_key=True),
    sa.Column("since", Timestamp, nullable=False, default=utcnow),
    sa.Column("reason", sa.Text, nullable=False),
)
"""`reason` is a sentence, made of the failures that it is there for."""
