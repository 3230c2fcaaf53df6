"""What is to be done about the ports of servers."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Timestamp

changed_ports = sa.Table(
    "changed_ports",
    METADATA,
    sa.Column("server_uuid", sa.String(36), primary_key=True),
    sa.Column("since", Timestamp, nullable=False, default=utcnow),
)
"""Servers of whose ports the network service has said that something changed, and nobody has looked yet."""
