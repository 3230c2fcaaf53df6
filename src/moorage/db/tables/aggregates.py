"""Host aggregates, and what the mirror in Placement has to remember of them."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Id, Timestamp

aggregates = sa.Table(
    "aggregates",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("metadata", sa.JSON, nullable=False, default=dict),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp),
    sqlite_autoincrement=True,
)
"""`metadata["availability_zone"]` is the aggregate's zone, as in the API."""

aggregate_hosts = sa.Table(
    "aggregate_hosts",
    METADATA,
    sa.Column("aggregate_id", Id, sa.ForeignKey("aggregates.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("host", sa.String(255), primary_key=True, index=True),
)

deleted_aggregates = sa.Table(
    "deleted_aggregates",
    METADATA,
    sa.Column("uuid", sa.String(36), primary_key=True),
    sa.Column("deleted_at", Timestamp, nullable=False, default=utcnow),
)
"""Those that providers in Placement may still be in: the mirror takes them out, and later forgets the row."""

unmirrored_nodes = sa.Table(
    "unmirrored_nodes",
    METADATA,
    sa.Column("uuid", sa.String(36), primary_key=True),
    sa.Column("since", Timestamp, nullable=False, default=utcnow),
)
"""The outbox of aggregates: nodes whose provider may have to be in others, since they came, moved or left or
their host joined or left one; and aggregates that were deleted, which providers may still be in."""

chores = sa.Table(
    "chores",
    METADATA,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("leased_until", Timestamp, nullable=False),
    sa.Column("finished_at", Timestamp),
)
"""Work that one conductor at a time does every now and then."""
