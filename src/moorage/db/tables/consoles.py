"""Who may see the console of a server, until when."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Id, Timestamp

console_tokens = sa.Table(
    "console_tokens",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("server_host", sa.String(255), nullable=False),
    sa.Column("node_uuid", sa.String(36), nullable=False),
    sa.Column("console_type", sa.String(16), nullable=False),
    sa.Column("address", sa.String(255), nullable=False),
    sa.Column("port", sa.Integer, nullable=False),
    sa.Column("path", sa.String(255), nullable=False),
    sa.Column("base_url", sa.String(255), nullable=False),
    sa.Column("expires_at", Timestamp, nullable=False, index=True),
    sa.Column("used_at", Timestamp),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sqlite_autoincrement=True,
)
"""Of a token only its hash is here. It is good for the server on the host and node that it was on, and no
longer; `expires_at` is until when a connection may begin, and `used_at` when a proxy last had one open."""
