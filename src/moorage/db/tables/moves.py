"""Moves of servers from host to host, as `os-migrations` shows them."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Id, Timestamp

migrations = sa.Table(
    "migrations",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("server_uuid", sa.String(36), nullable=False, index=True),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("active", sa.Boolean, nullable=False, default=True),
    sa.Column("source_host", sa.String(255), nullable=False),
    sa.Column("source_node", sa.String(255), nullable=False),
    sa.Column("source_node_uuid", sa.String(36), nullable=False),
    sa.Column("dest_host", sa.String(255)),
    sa.Column("dest_node", sa.String(255)),
    sa.Column("dest_node_uuid", sa.String(36)),
    sa.Column("dest_address", sa.String(255)),
    sa.Column("old_flavor", sa.JSON, nullable=False),
    sa.Column("new_flavor", sa.JSON, nullable=False),
    sa.Column("old_flavor_id", Id),
    sa.Column("new_flavor_id", Id),
    sa.Column("old_state", sa.String(32), nullable=False),
    sa.Column("reserved", sa.JSON, nullable=False, default=dict),
    sa.Column("wish", sa.String(16)),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
    sa.Index("ix_migrations_listing", "created_at", "id"),
    sqlite_autoincrement=True,
)
"""While a migration is `active`, its UUID may hold the source's allocations in Placement, and both of its
hosts may have the server. `old_state` is what the server was before, and becomes again if the move fails.
`reserved` is the quota that a larger flavor has taken in advance. `wish` is what an administrator has asked
of a live migration meanwhile: to abort it, or to hurry."""
