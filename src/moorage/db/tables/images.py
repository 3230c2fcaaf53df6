"""The tables of the built-in catalogue of images."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Timestamp

images = sa.Table(
    "images",
    METADATA,
    sa.Column("uuid", sa.String(36), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("properties", sa.JSON, nullable=False, default=dict),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp),
    sa.Column("owner", sa.String(255)),
    sa.Column("visibility", sa.String(16), nullable=False, server_default="public"),
    sa.Column("protected", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("hidden", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("status", sa.String(16), nullable=False, server_default="active"),
    sa.Column("tags", sa.JSON),
    sa.Column("disk_format", sa.String(16)),
    sa.Column("container_format", sa.String(16)),
    sa.Column("min_disk", sa.Integer, nullable=False, server_default="0"),
    sa.Column("min_ram", sa.Integer, nullable=False, server_default="0"),
    sa.Column("size", sa.BigInteger),
    sa.Column("checksum", sa.String(32)),
    sa.Column("os_hash_algo", sa.String(16)),
    sa.Column("os_hash_value", sa.String(128)),
    sa.Column("location", sa.Text),
    sa.Column("file", sa.String(80)),
    sa.Column("upload", sa.String(36)),
    sa.Column("upload_seen_at", Timestamp),
)
"""The built-in catalogue. `file` is the name of its data in the directory of images; `upload` is the one that
may end with this row's data, and `upload_seen_at` when it was last seen at work."""

image_members = sa.Table(
    "image_members",
    METADATA,
    sa.Column(
        "image_uuid", sa.String(36), sa.ForeignKey("images.uuid", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("project_id", sa.String(255), primary_key=True, index=True),
    sa.Column("status", sa.String(16), nullable=False, default="pending"),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
)
"""Projects that a shared image is shared with, and whether they want to see it in their lists."""
