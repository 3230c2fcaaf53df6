"""Servers that leave their hosts: those of a host that is being emptied, or of a rebalance."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Id, Timestamp

drains = sa.Table(
    "drains",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("host", sa.String(255), nullable=False, index=True),
    sa.Column("way", sa.String(16), nullable=False),
    sa.Column("max_parallel", sa.Integer, nullable=False),
    sa.Column("deadline_at", Timestamp),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("disabled_host", sa.Boolean, nullable=False),
    sa.Column("request_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("finished_at", Timestamp, index=True),
    sa.Column("goal", sa.String(16)),
    sqlite_autoincrement=True,
)
"""`host` is empty for a rebalance, whose `goal` says what it is for. `disabled_host` tells whether the drain
disabled its host, or found it so. `finished_at` is empty as long as a conductor has something to do."""

drained_servers = sa.Table(
    "drained_servers",
    METADATA,
    sa.Column("drain_id", Id, sa.ForeignKey("drains.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("server_uuid", sa.String(36), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("move", sa.String(16)),
    sa.Column("tries", sa.Integer, nullable=False, default=0),
    sa.Column("reason", sa.Text),
    sa.Column("due_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("source_host", sa.String(255)),
    sa.Column("target_host", sa.String(255)),
)
"""`move` is how it is moved, `tries` how often that has failed, `due_at` when it may be tried again. A server
of a rebalance leaves `source_host` for `target_host`; any other leaves the drain's host, for wherever."""
