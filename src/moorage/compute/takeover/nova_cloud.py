"""What there is in a cloud of Nova's, as records in its own words; all moments are in UTC."""

from __future__ import annotations

from datetime import datetime

import msgspec

from moorage.compute.takeover.nova_objects import Json


class NovaFlavor(msgspec.Struct, frozen=True):
    id: int
    flavorid: str
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    swap: int
    rxtx_factor: float
    disabled: bool
    is_public: bool
    description: str | None
    created_at: datetime
    extra_specs: dict[str, str]
    projects: list[str]


class NovaKeypair(msgspec.Struct, frozen=True):
    id: int
    user_id: str
    name: str
    type: str
    public_key: str
    fingerprint: str
    created_at: datetime


class NovaAggregate(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    name: str
    created_at: datetime
    updated_at: datetime | None
    metadata: dict[str, str]
    hosts: list[str]


class NovaServerGroup(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    rules: dict[str, int]
    created_at: datetime
    members: list[str]


class NovaLimit(msgspec.Struct, frozen=True):
    """One of a class, of a project, or of a user in a project."""

    resource: str
    bound: int
    class_name: str = ""
    project_id: str = ""
    user_id: str = ""


class NovaCell(msgspec.Struct, frozen=True):
    uuid: str
    name: str
    database_connection: str
    disabled: bool


class NovaApi(msgspec.Struct, frozen=True):
    """What the API's database holds, but for what belongs to single servers."""

    flavors: list[NovaFlavor]
    keypairs: list[NovaKeypair]
    aggregates: list[NovaAggregate]
    groups: list[NovaServerGroup]
    limits: list[NovaLimit]
    unborn: list[str]
    """Servers that were asked for, and that no cell knows yet."""


class NovaService(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    host: str
    binary: str
    disabled: bool
    disabled_reason: str | None
    forced_down: bool
    last_seen_up: datetime | None
    created_at: datetime
    updated_at: datetime


class NovaNode(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    host: str
    name: str
    hypervisor_type: str
    hypervisor_version: int
    host_ip: str | None
    vcpus: int
    memory_mb: int
    local_gb: int
    cpu_info: Json
    created_at: datetime


class NovaFault(msgspec.Struct, frozen=True):
    code: int
    message: str
    details: str
    created_at: datetime


class NovaEvent(msgspec.Struct, frozen=True):
    event: str
    start_time: datetime
    finish_time: datetime | None
    result: str | None
    host: str | None
    details: str | None


class NovaAction(msgspec.Struct, frozen=True):
    action: str
    request_id: str
    user_id: str
    project_id: str
    message: str | None
    start_time: datetime
    updated_at: datetime
    events: list[NovaEvent]


class NovaMigration(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    user_id: str | None
    project_id: str | None
    kind: str
    status: str
    source_host: str
    source_node: str
    dest_host: str | None
    dest_node: str | None
    dest_address: str | None
    old_flavor_id: int | None
    new_flavor_id: int | None
    created_at: datetime
    updated_at: datetime


class NovaServer(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    description: str | None
    hostname: str
    reservation_id: str
    launch_index: int
    image_ref: str
    key_name: str | None
    key_data: str | None
    vm_state: str
    task_state: str | None
    power_state: int
    progress: int
    host: str | None
    node: str | None
    availability_zone: str | None
    locked_by: str | None
    config_drive: bool
    user_data: str | None
    access_ip_v4: str
    access_ip_v6: str
    auto_disk_config: bool
    created_at: datetime
    updated_at: datetime
    launched_at: datetime | None
    terminated_at: datetime | None
    flavor: Json
    """As booted."""
    trusted_certs: list[str] | None
    network_info: list[Json]
    vif_tags: dict[str, str]
    """By port."""
    metadata: dict[str, str]
    system_metadata: dict[str, str]
    tags: list[str]
    fault: NovaFault | None
    actions: list[NovaAction]
    """The oldest first."""
    migrations: list[NovaMigration]
    request: Json
    """The request specification: zone, hints, security groups. Empty if there is none."""
