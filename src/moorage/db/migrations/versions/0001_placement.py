"""Placement's first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp, TransactionId

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    _catalogues()
    _providers()
    _consumers()
    _feed()


def _catalogues() -> None:
    op.create_table(
        "resource_classes",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("updated_at", Timestamp, nullable=False),
    )
    op.create_table(
        "traits",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("created_at", Timestamp, nullable=False),
    )


def _providers() -> None:
    op.create_table(
        "providers",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("parent_id", Id, sa.ForeignKey("providers.id"), index=True),
        sa.Column("root_id", Id, nullable=False, index=True),
        sa.Column("updated_at", Timestamp, nullable=False),
    )
    op.create_table(
        "inventories",
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("class_id", Id, sa.ForeignKey("resource_classes.id"), primary_key=True, index=True),
        *(
            sa.Column(name, sa.BigInteger, nullable=False)
            for name in ("total", "reserved", "min_unit", "max_unit", "step_size")
        ),
        sa.Column("allocation_ratio", sa.Double, nullable=False),
        sa.Column("used", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("updated_at", Timestamp, nullable=False),
    )
    op.create_table(
        "provider_traits",
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("trait_id", Id, sa.ForeignKey("traits.id"), primary_key=True, index=True),
    )
    op.create_table(
        "provider_aggregates",
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("aggregate_uuid", sa.String(36), primary_key=True, index=True),
    )


def _consumers() -> None:
    op.create_table(
        "consumer_types",
        sa.Column("id", Id, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
    )
    op.create_table(
        "consumers",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("type_id", Id, sa.ForeignKey("consumer_types.id")),
        sa.Index("ix_consumers_project_user", "project_id", "user_id"),
    )
    op.create_table(
        "allocations",
        sa.Column("consumer_id", Id, sa.ForeignKey("consumers.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("provider_id", Id, sa.ForeignKey("providers.id"), primary_key=True),
        sa.Column("class_id", Id, sa.ForeignKey("resource_classes.id"), primary_key=True),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Index("ix_allocations_provider_class", "provider_id", "class_id"),
    )


def _feed() -> None:
    xid = sa.Column(
        "xid", TransactionId, nullable=False, server_default=sa.text("pg_current_xact_id()"), index=True
    )
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "changes",
        sa.Column("id", Id, primary_key=True),
        sa.Column("provider_id", Id),
        sa.Column("kind", sa.SmallInteger, nullable=False),
        sa.Column("at", Timestamp, nullable=False, index=True),
        *([xid] if on_postgresql else []),
        sqlite_autoincrement=True,
    )
