"""What Placement has to be told once more, or could not be told yet."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Timestamp

placement_backlog = sa.Table(
    "placement_backlog",
    METADATA,
    sa.Column("kind", sa.String(16), primary_key=True),
    sa.Column("subject", sa.String(255), primary_key=True),
    sa.Column("since", Timestamp, nullable=False, default=utcnow),
    sa.Column("due_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("tries", sa.Integer, nullable=False, default=0),
    sa.Column("error", sa.Text, nullable=False, default=""),
)
"""`subject` is a host or the UUID of a provider, by `kind`; `since` changes when the same comes up again."""
