"""Making servers: quota, rows, actions and build operations, all in one transaction or not at all."""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute import actions, usage
from moorage.compute.actions import Origin
from moorage.compute.errors import ComputeError
from moorage.compute.quotas import Limits
from moorage.compute.states import TaskState, VmState
from moorage.conductor import ledger
from moorage.core import uuids
from moorage.db.tables.compute import server_groups, servers

_ID_LETTERS = string.ascii_lowercase + string.digits
_MAX_HOSTNAME = 63


@dataclass(frozen=True)
class Wanted:
    """What a user asked for, checked and looked up."""

    name: str
    flavor: Mapping[str, Any]
    request: Mapping[str, Any]
    """As the scheduler and the conductor read it; see the table."""
    least: int = 1
    most: int = 1
    description: str | None = None
    hostname: str | None = None
    image_ref: str = ""
    key_name: str | None = None
    user_data: str | None = None
    config_drive: bool = False
    zone: str | None = None
    access_ip_v4: str = ""
    access_ip_v6: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    group: str | None = None


@dataclass(frozen=True)
class Made:
    reservation_id: str
    uuids: list[str]


@dataclass(frozen=True)
class Bounds:
    """The quotas that hold for this caller."""

    project: Limits
    user: Limits | None
    """Limits of the user's own, where they have some."""
    group_members: int


def create(connection: Connection, origin: Origin, wanted: Wanted, bounds: Bounds) -> Made:
    user = None if bounds.user is None else (origin.user_id, bounds.user)
    count = usage.take(
        connection, origin.project_id, wanted.flavor, wanted.least, wanted.most, bounds.project, user
    )
    group_id = None if wanted.group is None else _lock_group(connection, wanted.group, origin.project_id)
    reservation_id = "r-" + "".join(secrets.choice(_ID_LETTERS) for _ in range(8))
    rows = [_row(origin, wanted, reservation_id, index, count) for index in range(count)]
    inserted = connection.execute(sa.insert(servers).returning(servers.c.id, servers.c.uuid), rows)
    ids = {uuid: server_id for server_id, uuid in inserted}
    if group_id is not None:
        usage.join_group(connection, group_id, list(ids.values()), bounds.group_members)
    action_ids = actions.start_many(connection, list(ids.values()), "create", origin)
    for server_id, action_id in action_ids.items():
        ledger.enqueue(connection, server_id, "build", {}, action_id)
    return Made(reservation_id, [row["uuid"] for row in rows])


def _row(origin: Origin, wanted: Wanted, reservation_id: str, index: int, count: int) -> dict[str, Any]:
    uuid = uuids.generate()
    suffix = f"-{index + 1}" if count > 1 else ""
    return {
        "uuid": uuid,
        "project_id": origin.project_id,
        "user_id": origin.user_id,
        "name": f"{wanted.name}{suffix}",
        "description": wanted.description,
        "hostname": wanted.hostname or host_name_from(wanted.name, uuid, suffix),
        "reservation_id": reservation_id,
        "launch_index": index,
        "flavor": dict(wanted.flavor),
        "flavorid": wanted.flavor["id"],
        "image_ref": wanted.image_ref,
        "key_name": wanted.key_name,
        "vm_state": VmState.BUILDING,
        "task_state": TaskState.SCHEDULING,
        "availability_zone": None,
        "requested_zone": wanted.zone,
        "config_drive": wanted.config_drive,
        "user_data": wanted.user_data,
        "access_ip_v4": wanted.access_ip_v4,
        "access_ip_v6": wanted.access_ip_v6,
        "metadata": dict(wanted.metadata),
        "tags": list(wanted.tags),
        "request": dict(wanted.request),
    }


def host_name_from(name: str, uuid: str, suffix: str = "") -> str:
    """A name that a machine can have, made from one that a person gave."""
    plain = name.encode("latin-1", "ignore").decode("latin-1")[:_MAX_HOSTNAME]
    plain = re.sub(r"[ _.]", "-", plain)
    plain = re.sub(r"[^\w-]+", "", plain).lower().strip("-")
    return f"{plain}{suffix}" if plain else f"Server-{uuid}"


def _lock_group(connection: Connection, uuid: str, project_id: str) -> int:
    query = (
        sa.select(server_groups.c.id)
        .where(server_groups.c.uuid == uuid, server_groups.c.project_id == project_id)
        .with_for_update()
    )
    found = connection.execute(query).scalar_one_or_none()
    if found is None:
        raise ComputeError(f"Instance group {uuid} could not be found.")
    return int(found)
