"""The Compute side's tables.

A server is one row; what its API shows but nothing searches by (flavor as booted, metadata, addresses, fault)
is JSON in it. `quota_usage` is a counter row a project, locked by whoever changes it, so that quotas hold
under concurrency.
"""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.metadata import METADATA, Id, Timestamp

flavors = sa.Table(
    "flavors",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("flavorid", sa.String(255), nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("vcpus", sa.BigInteger, nullable=False),
    sa.Column("ram", sa.BigInteger, nullable=False),
    sa.Column("disk", sa.BigInteger, nullable=False),
    sa.Column("ephemeral", sa.BigInteger, nullable=False, default=0),
    sa.Column("swap", sa.BigInteger, nullable=False, default=0),
    sa.Column("rxtx_factor", sa.Double, nullable=False, default=1.0),
    sa.Column("is_public", sa.Boolean, nullable=False, default=True),
    sa.Column("description", sa.Text),
    sa.Column("extra_specs", sa.JSON, nullable=False, default=dict),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sqlite_autoincrement=True,
)

flavor_projects = sa.Table(
    "flavor_projects",
    METADATA,
    sa.Column("flavor_id", Id, sa.ForeignKey("flavors.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("project_id", sa.String(255), primary_key=True),
)

keypairs = sa.Table(
    "keypairs",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("type", sa.String(16), nullable=False),
    sa.Column("public_key", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.String(255), nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.UniqueConstraint("user_id", "name", name="uq_keypairs_user_name"),
    sqlite_autoincrement=True,
)

services = sa.Table(
    "services",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("binary", sa.String(64), nullable=False),
    sa.Column("zone", sa.String(255)),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("facts", sa.JSON, nullable=False, default=dict),
    sa.Column("disabled", sa.Boolean, nullable=False, default=False),
    sa.Column("disabled_reason", sa.String(255)),
    sa.Column("forced_down", sa.Boolean, nullable=False, default=False),
    sa.Column("seen_at", Timestamp),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
    sa.UniqueConstraint("host", "binary", name="uq_services_host_binary"),
    sqlite_autoincrement=True,
)
"""`facts` is what an agent says of itself: driver, cell, what it serves. `zone` is not read any more: it
stays for conductors of the release before, which read it while an upgrade is under way."""

nodes = sa.Table(
    "nodes",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("name", sa.String(255), nullable=False, index=True),
    sa.Column("host", sa.String(255), nullable=False, index=True),
    sa.Column("mirrored_host", sa.String(255)),
    sa.Column("epoch", sa.BigInteger, nullable=False, default=1),
    sa.Column("hypervisor_type", sa.String(64), nullable=False),
    sa.Column("facts", sa.JSON, nullable=False, default=dict),
    sa.Column("build_failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
    sqlite_autoincrement=True,
)
"""The UUID is the provider's; `epoch` grows whenever the node gets another owner; `build_failures` are
those in a row. `mirrored_host` is the host in whose own aggregate Placement has the provider, as far as we
told it."""

UNMIRRORED = nodes.c.mirrored_host.is_(None) | (nodes.c.mirrored_host != nodes.c.host)
sa.Index("ix_nodes_unmirrored", nodes.c.host, postgresql_where=UNMIRRORED, sqlite_where=UNMIRRORED)
"""The few nodes of a host, or its only one, that its own aggregate does not have."""

SHARED_CAPACITY = "ironic-capacity"
"""The type of a node that is no place for servers: its owner is who writes down what several hosts share."""
IS_PLACE = nodes.c.hypervisor_type != SHARED_CAPACITY
"""Whether servers can be on a node."""

servers = sa.Table(
    "servers",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("description", sa.String(255)),
    sa.Column("hostname", sa.String(255), nullable=False),
    sa.Column("reservation_id", sa.String(64), nullable=False, index=True),
    sa.Column("launch_index", sa.Integer, nullable=False, default=0),
    sa.Column("flavor", sa.JSON, nullable=False),
    sa.Column("flavorid", sa.String(255), nullable=False),
    sa.Column("image_ref", sa.String(255), nullable=False, default=""),
    sa.Column("key_name", sa.String(255)),
    sa.Column("vm_state", sa.String(32), nullable=False),
    sa.Column("task_state", sa.String(32)),
    sa.Column("power_state", sa.Integer, nullable=False, default=0),
    sa.Column("progress", sa.Integer, nullable=False, default=0),
    sa.Column("host", sa.String(255)),
    sa.Column("node", sa.String(255)),
    sa.Column("node_uuid", sa.String(36)),
    sa.Column("availability_zone", sa.String(255)),
    sa.Column("requested_zone", sa.String(255)),
    sa.Column("locked_by", sa.String(16)),
    sa.Column("locked_reason", sa.String(255)),
    sa.Column("config_drive", sa.Boolean, nullable=False, default=False),
    sa.Column("user_data", sa.Text),
    sa.Column("access_ip_v4", sa.String(39), nullable=False, default=""),
    sa.Column("access_ip_v6", sa.String(39), nullable=False, default=""),
    sa.Column("metadata", sa.JSON, nullable=False, default=dict),
    sa.Column("tags", sa.JSON, nullable=False, default=list),
    sa.Column("addresses", sa.JSON, nullable=False, default=dict),
    sa.Column("request", sa.JSON, nullable=False, default=dict),
    sa.Column("fault", sa.JSON(none_as_null=True)),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("launched_at", Timestamp),
    sa.Column("terminated_at", Timestamp),
    sa.Column("deleted_at", Timestamp),
    sa.Index("ix_servers_project", "project_id", "created_at", "id"),
    sa.Index("ix_servers_host", "host"),
    sa.Index("ix_servers_listing", "created_at", "id"),
    sqlite_autoincrement=True,
)
"""`request` is what the user asked for beyond the flavor: networks, hints, groups, target host."""

_LIVES = servers.c.deleted_at.is_(None)
sa.Index("ix_servers_node", servers.c.node_uuid, postgresql_where=_LIVES, sqlite_where=_LIVES)
_DELETED = servers.c.deleted_at.is_not(None)
sa.Index("ix_servers_deleted", servers.c.deleted_at, postgresql_where=_DELETED, sqlite_where=_DELETED)

server_groups = sa.Table(
    "server_groups",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("project_id", sa.String(255), nullable=False, index=True),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("policy", sa.String(32), nullable=False),
    sa.Column("rules", sa.JSON, nullable=False, default=dict),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sqlite_autoincrement=True,
)

server_group_members = sa.Table(
    "server_group_members",
    METADATA,
    sa.Column("group_id", Id, sa.ForeignKey("server_groups.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), primary_key=True, index=True),
    sa.Column("node_uuid", sa.String(36)),
)
"""`node_uuid` is where the group has agreed to have the member: see `conductor/placing/groups.py`."""

actions = sa.Table(
    "actions",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("request_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("message", sa.Text),
    sa.Column("started_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("updated_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("events", sa.JSON, nullable=False, default=list),
    sqlite_autoincrement=True,
)
"""`events` is the list of the action's steps, each with its name, start, finish, result and host."""

quotas = sa.Table(
    "quotas",
    METADATA,
    sa.Column("project_id", sa.String(255), primary_key=True),
    sa.Column("user_id", sa.String(255), primary_key=True, default=""),
    sa.Column("resource", sa.String(64), primary_key=True),
    sa.Column("bound", sa.BigInteger, nullable=False),
)
"""Limits that differ from the configured ones; an empty `user_id` means the project as a whole."""

quota_usage = sa.Table(
    "quota_usage",
    METADATA,
    sa.Column("project_id", sa.String(255), primary_key=True),
    sa.Column("instances", sa.BigInteger, nullable=False, default=0),
    sa.Column("cores", sa.BigInteger, nullable=False, default=0),
    sa.Column("ram", sa.BigInteger, nullable=False, default=0),
)

operations = sa.Table(
    "operations",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("step", sa.String(32), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False, default=1),
    sa.Column("tries", sa.Integer, nullable=False, default=0),
    sa.Column("data", sa.JSON, nullable=False, default=dict),
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("secrets", sa.JSON(none_as_null=True)),
    sa.Column("action_id", Id),
    sa.Column("due_at", Timestamp),
    sa.Column("lease", sa.String(64)),
    sa.Column("leased_until", Timestamp),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("finished_at", Timestamp),
    sa.Column("outcome", sa.String(16)),
    sa.Column("error", sa.Text),
    sa.Column("step_since", Timestamp),
    sa.Column("trouble", sa.Text),
    sa.Column("cancel_reason", sa.Text),
    sa.Column("request_ids", sa.String(128)),
    sa.Index("ix_operations_due", "finished_at", "due_at"),
    sqlite_autoincrement=True,
)
"""`due_at` is when a conductor should look next: now for work, the deadline while an agent works. `result` is
what the agent said, in a column of its own because it may come while a conductor writes the others; so is
`cancel_reason`. `secrets` is what agents have to know and nobody else may, such as a password: whatever ends
the operation erases it. `step_since` is when it came to its step, `trouble` why it is tried there again.
`request_ids` is what log lines about it have: the caller's own id of the request, if it had one, and ours."""

traces = sa.Table(
    "traces",
    METADATA,
    sa.Column("id", Id, primary_key=True),
    sa.Column("server_id", Id, sa.ForeignKey("servers.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("operation_id", Id),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, default=utcnow),
    sa.Column("trace", sa.JSON, nullable=False),
    sqlite_autoincrement=True,
)

addresses = sa.Table(
    "addresses",
    METADATA,
    sa.Column("address", sa.String(39), primary_key=True),
    sa.Column("pool", sa.String(64), nullable=False),
    sa.Column("server_uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("mac", sa.String(17), nullable=False),
    sa.Column("port_uuid", sa.String(36), nullable=False),
    sa.Index("ix_addresses_pool", "pool"),
)
"""What the built-in pool has given out."""
