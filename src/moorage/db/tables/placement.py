"""Placement's tables.

`inventories.used` is a counter that claims keep: capacity is checked against it, never against a sum over
`allocations`. `changes` is the feed from which each process keeps its picture of the fleet current.
"""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Id, Timestamp

resource_classes = sa.Table(
    "resource_classes",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow, onupdate=utcnow),
    sqlite_autoincrement=True,
)

traits = sa.Table(
    "traits",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sqlite_autoincrement=True,
)

providers = sa.Table(
    "providers",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("generation", sa.BigInteger, nullable=False, default=0),
    sa.Column("parent_id", Id, sa.ForeignKey("providers.id"), index=True),
    sa.Column("root_id", Id, nullable=False, index=True),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow, onupdate=utcnow),
    sqlite_autoincrement=True,
)

tree_owners = sa.Table(
    "tree_owners",
    METADATA,
    sa.Column("root_id", Id, sa.ForeignKey("providers.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("since", Timestamp, nullable=False, default=utcnow, onupdate=utcnow),
)
"""Which agent's user a tree belongs to; only roots have a row."""

inventories = sa.Table(
    "inventories",
    METADATA,
    sa.Column("provider_id", Id, sa.ForeignKey("providers.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("class_id", Id, sa.ForeignKey("resource_classes.id"), primary_key=True, index=True),
    sa.Column("total", sa.BigInteger, nullable=False),
    sa.Column("reserved", sa.BigInteger, nullable=False),
    sa.Column("min_unit", sa.BigInteger, nullable=False),
    sa.Column("max_unit", sa.BigInteger, nullable=False),
    sa.Column("step_size", sa.BigInteger, nullable=False),
    sa.Column("allocation_ratio", sa.Double, nullable=False),
    sa.Column("used", sa.BigInteger, nullable=False, default=0, server_default="0"),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
)

provider_traits = sa.Table(
    "provider_traits",
    METADATA,
    sa.Column("provider_id", Id, sa.ForeignKey("providers.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("trait_id", Id, sa.ForeignKey("traits.id"), primary_key=True, index=True),
)

provider_aggregates = sa.Table(
    "provider_aggregates",
    METADATA,
    sa.Column("provider_id", Id, sa.ForeignKey("providers.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("aggregate_uuid", sa.String(36), primary_key=True, index=True),
)

consumer_types = sa.Table(
    "consumer_types",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sqlite_autoincrement=True,
)

consumers = sa.Table(
    "consumers",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False, default=0),
    sa.Column("type_id", Id, sa.ForeignKey("consumer_types.id")),
    sa.Index("ix_consumers_project_user", "project_id", "user_id"),
    sqlite_autoincrement=True,
)

allocations = sa.Table(
    "allocations",
    METADATA,
    sa.Column("consumer_id", Id, sa.ForeignKey("consumers.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("provider_id", Id, sa.ForeignKey("providers.id"), primary_key=True),
    sa.Column("class_id", Id, sa.ForeignKey("resource_classes.id"), primary_key=True),
    sa.Column("used", sa.BigInteger, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Index("ix_allocations_provider_class", "provider_id", "class_id"),
)

changes = sa.Table(
    "changes",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("provider_id", Id),
    sa.Column("kind", sa.SmallInteger, nullable=False),
    sa.Column("at", Timestamp, nullable=False, default=utcnow, index=True),
    sqlite_autoincrement=True,
)
"""On PostgreSQL the table also has `xid`, the writing transaction's id: see `placement/feed.py`."""
