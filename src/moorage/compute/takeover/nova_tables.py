"""Nova's tables, as far as they are read; of both its API's database and its cells'.

Only what is named here is asked for, so that columns which came later, or have gone, matter to nobody.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

_TYPES: dict[str, sa.types.TypeEngine[Any]] = {
    **dict.fromkeys(
        (
            *("created_at", "updated_at", "launched_at", "terminated_at", "last_seen_up"),
            *("start_time", "finish_time"),
        ),
        sa.DateTime(),
    ),
    **dict.fromkeys(
        ("disabled", "is_public", "locked", "auto_disk_config", "hidden", "forced_down"), sa.Boolean()
    ),
}
"""Of columns whose values not every driver gives as what they are."""


def _table(name: str, columns: str) -> sa.TableClause:
    return sa.table(name, *(sa.column(column, _TYPES.get(column)) for column in columns.split()))


flavors = _table(
    "flavors",
    "id name memory_mb vcpus root_gb ephemeral_gb flavorid swap rxtx_factor disabled is_public description "
    "created_at",
)
flavor_extra_specs = _table("flavor_extra_specs", "flavor_id key value")
flavor_projects = _table("flavor_projects", "flavor_id project_id")
key_pairs = _table("key_pairs", "id name user_id fingerprint public_key type created_at")
aggregates = _table("aggregates", "id uuid name created_at updated_at")
aggregate_hosts = _table("aggregate_hosts", "aggregate_id host")
aggregate_metadata = _table("aggregate_metadata", "aggregate_id key value")
instance_groups = _table("instance_groups", "id uuid user_id project_id name created_at")
instance_group_policy = _table("instance_group_policy", "group_id policy rules")
instance_group_member = _table("instance_group_member", "id group_id instance_uuid")
quota_classes = _table("quota_classes", "class_name resource hard_limit")
quotas = _table("quotas", "project_id resource hard_limit")
project_user_quotas = _table("project_user_quotas", "project_id user_id resource hard_limit")
cell_mappings = _table("cell_mappings", "id uuid name database_connection disabled")
request_specs = _table("request_specs", "instance_uuid spec")
build_requests = _table("build_requests", "instance_uuid")

instances = _table(
    "instances",
    "id uuid user_id project_id image_ref hostname launch_index key_name key_data power_state vm_state "
    "task_state host node user_data reservation_id launched_at terminated_at availability_zone display_name "
    "display_description locked locked_by config_drive access_ip_v4 access_ip_v6 auto_disk_config progress "
    "hidden created_at updated_at deleted",
)
instance_extra = _table("instance_extra", "instance_uuid flavor trusted_certs numa_topology pci_requests")
instance_info_caches = _table("instance_info_caches", "instance_uuid network_info")
instance_metadata = _table("instance_metadata", "id instance_uuid key value deleted")
instance_system_metadata = _table("instance_system_metadata", "id instance_uuid key value deleted")
instance_faults = _table("instance_faults", "id instance_uuid code message details created_at deleted")
instance_actions = _table(
    "instance_actions",
    "id instance_uuid action request_id user_id project_id start_time message updated_at",
)
instance_actions_events = _table(
    "instance_actions_events", "id action_id event start_time finish_time result host details"
)
migrations = _table(
    "migrations",
    "id uuid instance_uuid user_id project_id migration_type status source_compute source_node dest_compute "
    "dest_node dest_host old_instance_type_id new_instance_type_id hidden created_at updated_at deleted",
)
services = _table(
    "services",
    "id uuid host binary disabled disabled_reason last_seen_up forced_down created_at updated_at deleted",
)
compute_nodes = _table(
    "compute_nodes",
    "id uuid host hypervisor_hostname hypervisor_type hypervisor_version host_ip vcpus memory_mb local_gb "
    "cpu_info created_at deleted",
)
block_device_mapping = _table(
    "block_device_mapping", "id instance_uuid source_type destination_type volume_id deleted"
)
tags = _table("tags", "resource_id tag")
virtual_interfaces = _table("virtual_interfaces", "instance_uuid uuid tag deleted")

LIVES = instances.c.deleted == 0
"""Rows of deleted instances are kept until somebody archives them."""
