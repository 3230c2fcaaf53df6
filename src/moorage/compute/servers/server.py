"""A server: the row of one, as the rest of the Compute side sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Row

from moorage.compute.servers import states
from moorage.db.tables.compute import servers


@dataclass(slots=True)
class Server:
    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    description: str | None
    hostname: str
    reservation_id: str
    launch_index: int
    flavor: dict[str, Any]
    flavorid: str
    image_ref: str
    key_name: str | None
    vm_state: str
    task_state: str | None
    power_state: int
    progress: int
    host: str | None
    node: str | None
    node_uuid: str | None
    availability_zone: str | None
    requested_zone: str | None
    locked_by: str | None
    locked_reason: str | None
    config_drive: bool
    user_data: str | None
    access_ip_v4: str
    access_ip_v6: str
    metadata: dict[str, str]
    tags: list[str]
    addresses: dict[str, list[dict[str, Any]]]
    request: dict[str, Any]
    fault: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime
    launched_at: datetime | None
    terminated_at: datetime | None
    deleted_at: datetime | None

    @property
    def status(self) -> str:
        return states.status(self.vm_state, self.task_state)

    @property
    def instance_name(self) -> str:
        """The name by which a hypervisor knows it."""
        return f"instance-{self.id:08x}"

    @property
    def on_node(self) -> str:
        """The UUID of its node, for those who deal only with servers that have one."""
        assert self.node_uuid is not None, f"server {self.uuid} is on no node"
        return self.node_uuid

    def changed(self, columns: Mapping[str, Any]) -> Server:
        """As it is once these columns are written."""
        return replace(self, **columns) if columns else self

    def as_row(self) -> dict[str, Any]:
        """By column, for those who know only the table."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(field.name for field in fields(Server))
COLUMNS = tuple(servers.c[name] for name in _NAMES)
"""What to select for `from_row`."""


def from_row(row: Row[Any]) -> Server:
    return Server(*tuple(row))
