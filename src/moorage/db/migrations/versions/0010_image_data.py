"""Images that have owners and data: until now, all were records for everybody."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Timestamp

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None
kind = "expand"

_MOVED = ("disk_format", "container_format", "min_disk", "min_ram", "size")
"""Had been among the properties."""

_IMAGES = sa.table(
    "images",
    sa.column("uuid", sa.String),
    sa.column("properties", sa.JSON),
    sa.column("disk_format", sa.String),
    sa.column("container_format", sa.String),
    sa.column("min_disk", sa.Integer),
    sa.column("min_ram", sa.Integer),
    sa.column("size", sa.BigInteger),
)


def upgrade() -> None:
    for column in (
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
    ):
        op.add_column("images", column)
    connection = op.get_bind()
    for uuid, properties in connection.execute(sa.select(_IMAGES.c.uuid, _IMAGES.c.properties)).all():
        connection.execute(sa.update(_IMAGES).where(_IMAGES.c.uuid == uuid).values(_values(properties)))


def _values(properties: dict[str, Any]) -> dict[str, Any]:
    moved = {name: value for name, value in properties.items() if name in _MOVED}
    kept = {name: value for name, value in properties.items() if name not in _MOVED}
    return {**moved, "properties": kept}
