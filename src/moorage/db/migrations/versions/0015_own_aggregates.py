"""Nodes that Placement has in the own aggregate of their host: none yet, so all go into the outbox."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import Timestamp

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None
kind = "expand"

_UNMIRRORED = sa.text("mirrored_host IS NULL OR mirrored_host <> host")
_NODES = sa.table("nodes", *map(sa.column, ("uuid", "name", "host", "hypervisor_type")))
_OUTBOX = sa.table("unmirrored_nodes", sa.column("uuid"), sa.column("since", Timestamp))


def upgrade() -> None:
    op.add_column("nodes", sa.Column("mirrored_host", sa.String(255)))
    op.create_index(
        "ix_nodes_unmirrored", "nodes", ["host"], postgresql_where=_UNMIRRORED, sqlite_where=_UNMIRRORED
    )
    concerned = sa.select(_NODES.c.uuid, sa.literal(utcnow(), Timestamp)).where(
        _NODES.c.host != "",
        _NODES.c.name != _NODES.c.host,
        _NODES.c.hypervisor_type != "ironic-capacity",
        _NODES.c.uuid.not_in(sa.select(_OUTBOX.c.uuid)),
    )
    op.execute(sa.insert(_OUTBOX).from_select(["uuid", "since"], concerned))
