"""The Compute side's first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from moorage.db.tables.metadata import Id, Timestamp

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
kind = "expand"


def upgrade() -> None:
    _users_things()
    _hosts()
    _servers()
    _work()


def _users_things() -> None:
    op.create_table(
        "flavors",
        sa.Column("id", Id, primary_key=True),
        sa.Column("flavorid", sa.String(255), nullable=False, unique=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("vcpus", sa.BigInteger, nullable=False),
        sa.Column("ram", sa.BigInteger, nullable=False),
        sa.Column("disk", sa.BigInteger, nullable=False),
        sa.Column("ephemeral", sa.BigInteger, nullable=False),
        sa.Column("swap", sa.BigInteger, nullable=False),
        sa.Column("rxtx_factor", sa.Double, nullable=False),
        sa.Column("is_public", sa.Boolean, nullable=False),
        sa.Column("description", sa.Text),
        sa.Column("extra_specs", sa.JSON, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
    )
    op.create_table(
        "flavor_projects",
        sa.Column("flavor_id", Id, sa.ForeignKey("flavors.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("project_id", sa.String(255), primary_key=True),
    )
    op.create_table(
        "keypairs",
        sa.Column("id", Id, primary_key=True),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(255), nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.UniqueConstraint("user_id", "name", name="uq_keypairs_user_name"),
    )
    op.create_table(
        "images",
        sa.Column("uuid", sa.String(36), primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("properties", sa.JSON, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
    )
    op.create_table(
        "quotas",
        sa.Column("project_id", sa.String(255), primary_key=True),
        sa.Column("user_id", sa.String(255), primary_key=True),
        sa.Column("resource", sa.String(64), primary_key=True),
        sa.Column("bound", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "quota_usage",
        sa.Column("project_id", sa.String(255), primary_key=True),
        sa.Column("instances", sa.BigInteger, nullable=False),
        sa.Column("cores", sa.BigInteger, nullable=False),
        sa.Column("ram", sa.BigInteger, nullable=False),
    )


def _hosts() -> None:
    op.create_table(
        "services",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("binary", sa.String(64), nullable=False),
        sa.Column("zone", sa.String(255)),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("disabled", sa.Boolean, nullable=False),
        sa.Column("disabled_reason", sa.String(255)),
        sa.Column("forced_down", sa.Boolean, nullable=False),
        sa.Column("seen_at", Timestamp),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.UniqueConstraint("host", "binary", name="uq_services_host_binary"),
    )
    op.create_table(
        "nodes",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("name", sa.String(255), nullable=False, index=True),
        sa.Column("host", sa.String(255), nullable=False, index=True),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("hypervisor_type", sa.String(64), nullable=False),
        sa.Column("facts", sa.JSON, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
    )


def _servers() -> None:
    op.create_table(
        "servers",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.String(255)),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("reservation_id", sa.String(64), nullable=False, index=True),
        sa.Column("launch_index", sa.Integer, nullable=False),
        sa.Column("flavor", sa.JSON, nullable=False),
        sa.Column("flavorid", sa.String(255), nullable=False),
        sa.Column("image_ref", sa.String(255), nullable=False),
        sa.Column("key_name", sa.String(255)),
        sa.Column("vm_state", sa.String(32), nullable=False),
        sa.Column("task_state", sa.String(32)),
        sa.Column("power_state", sa.Integer, nullable=False),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("node", sa.String(255)),
        sa.Column("node_uuid", sa.String(36)),
        sa.Column("availability_zone", sa.String(255)),
        sa.Column("requested_zone", sa.String(255)),
        sa.Column("locked_by", sa.String(16)),
        sa.Column("locked_reason", sa.String(255)),
        sa.Column("config_drive", sa.Boolean, nullable=False),
        sa.Column("user_data", sa.Text),
        sa.Column("access_ip_v4", sa.String(39), nullable=False),
        sa.Column("access_ip_v6", sa.String(39), nullable=False),
        sa.Column("metadata", sa.JSON, nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("addresses", sa.JSON, nullable=False),
        sa.Column("request", sa.JSON, nullable=False),
        sa.Column("fault", sa.JSON(none_as_null=True)),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Column("launched_at", Timestamp),
        sa.Column("terminated_at", Timestamp),
        sa.Column("deleted_at", Timestamp),
        sa.Index("ix_servers_project", "project_id", "created_at", "id"),
        sa.Index("ix_servers_host", "host"),
        sa.Index("ix_servers_listing", "created_at", "id"),
    )
    op.create_table(
        "server_groups",
        sa.Column("id", Id, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("project_id", sa.String(255), nullable=False, index=True),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("policy", sa.String(32), nullable=False),
        sa.Column("rules", sa.JSON, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
    )
    op.create_table(
        "server_group_members",
        sa.Column("group_id", Id, sa.ForeignKey("server_groups.id", ondelete="CASCADE"), primary_key=True),
        sa.Column(
            "server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), primary_key=True, index=True
        ),
        sa.Column("node_uuid", sa.String(36)),
    )
    op.create_table(
        "actions",
        sa.Column("id", Id, primary_key=True),
        sa.Column(
            "server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("message", sa.Text),
        sa.Column("started_at", Timestamp, nullable=False),
        sa.Column("updated_at", Timestamp, nullable=False),
        sa.Column("events", sa.JSON, nullable=False),
    )


def _work() -> None:
    op.create_table(
        "operations",
        sa.Column("id", Id, primary_key=True),
        sa.Column(
            "server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("step", sa.String(32), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("data", sa.JSON, nullable=False),
        sa.Column("result", sa.JSON(none_as_null=True)),
        sa.Column("action_id", Id),
        sa.Column("due_at", Timestamp),
        sa.Column("lease", sa.String(64)),
        sa.Column("leased_until", Timestamp),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("finished_at", Timestamp),
        sa.Column("outcome", sa.String(16)),
        sa.Column("error", sa.Text),
        sa.Index("ix_operations_due", "finished_at", "due_at"),
    )
    op.create_table(
        "traces",
        sa.Column("id", Id, primary_key=True),
        sa.Column(
            "server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("operation_id", Id),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("created_at", Timestamp, nullable=False),
        sa.Column("trace", sa.JSON, nullable=False),
    )
    op.create_table(
        "addresses",
        sa.Column("address", sa.String(39), primary_key=True),
        sa.Column("pool", sa.String(64), nullable=False),
        sa.Column("server_uuid", sa.String(36), nullable=False, unique=True),
        sa.Column("mac", sa.String(17), nullable=False),
        sa.Column("port_uuid", sa.String(36), nullable=False),
        sa.Index("ix_addresses_pool", "pool"),
    )
