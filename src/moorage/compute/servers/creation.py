"""Making servers: quota, rows, actions and build operations, all in one transaction or not at all."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import ComputeError
from moorage.compute.quotas import classes, usage
from moorage.compute.quotas.overruns import require_room
from moorage.compute.quotas.quotas import Limits
from moorage.compute.quotas.usage import QuotaHeadroom
from moorage.compute.servers import actions
from moorage.compute.servers.actions import Origin
from moorage.compute.servers.states import TaskState, VmState
from moorage.core import random_text, uuids
from moorage.db.tables.compute import server_group_members, server_groups, servers
from moorage.ledger import queue

_ID_LETTERS = string.ascii_lowercase + string.digits
_MAX_HOSTNAME = 63
_MAX_NAME = 255


@dataclass(frozen=True)
class ServerTemplate:
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
class CreatedServers:
    reservation_id: str
    uuids: list[str]


@dataclass(frozen=True)
class CreationQuotas:
    """The quotas that hold for this caller."""

    project: Limits
    user: Limits | None
    """Limits of the user's own, where they have some."""

    @property
    def of_user(self) -> Limits:
        return self.project if self.user is None else {**self.project, **self.user}


@dataclass(frozen=True)
class CreationRequest:
    """One request for one server or several."""

    origin: Origin
    wanted: ServerTemplate
    bounds: CreationQuotas


def create(
    connection: Connection, requests: Sequence[CreationRequest]
) -> list[CreatedServers | ComputeError]:
    """Make what independent requests want, each on its own merits: for each what was made, or why not."""
    locked = LockedUsage(connection)
    for project_id in sorted({request.origin.project_id for request in requests}):
        locked.open(project_id)
    outcomes: list[CreatedServers | ComputeError] = []
    rows: list[tuple[CreationRequest, dict[str, Any]]] = []
    for request in requests:
        try:
            count = locked.enter(request)
        except ComputeError as error:
            outcomes.append(error)
            continue
        made, new = rows_of(request, count)
        outcomes.append(made)
        rows += [(request, row) for row in new]
    locked.close()
    if rows:
        _insert(connection, rows, locked)
    return outcomes


def rows_of(request: CreationRequest, count: int) -> tuple[CreatedServers, list[dict[str, Any]]]:
    """The rows that the servers of a request will have."""
    reservation_id = new_reservation_id()
    rows = [_row(request.origin, request.wanted, reservation_id, index, count) for index in range(count)]
    return CreatedServers(reservation_id, [row["uuid"] for row in rows]), rows


def new_reservation_id() -> str:
    return "r-" + random_text.draw(_ID_LETTERS, 8)


_INSERT = sa.insert(servers).returning(servers.c.uuid, servers.c.id)


def _insert(
    connection: Connection, rows: list[tuple[CreationRequest, dict[str, Any]]], locked: LockedUsage
) -> None:
    inserted = connection.execute(_INSERT, [row for _, row in rows])
    ids = {made.uuid: made.id for made in inserted}
    origins = {ids[row["uuid"]]: request.origin for request, row in rows}
    members = [
        {"group_id": locked.group_id(request.wanted.group), "server_id": ids[row["uuid"]]}
        for request, row in rows
        if request.wanted.group is not None
    ]
    if members:
        connection.execute(sa.insert(server_group_members), members)
    request_ids = {server_id: origin.request_ids for server_id, origin in origins.items()}
    queue.enqueue_first(connection, "build", actions.start_many(connection, origins, "create"), request_ids)


class LockedUsage:
    """What projects, users and groups have, under lock, while requests are counted against it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._projects: dict[str, dict[str, int]] = {}
        self._users: dict[tuple[str, str], dict[str, int]] = {}
        self._groups: dict[str, _Group] = {}
        self._entered: dict[str, Counter[str]] = {}

    def open(self, project_id: str) -> None:
        """Nobody else counts for this project until the transaction ends."""
        self._projects[project_id] = usage.lock(self._connection, project_id)

    def enter(self, request: CreationRequest) -> int:
        """Count a request, or raise and count nothing; how many servers it gets."""
        project_id, user_id = request.origin.project_id, request.origin.user_id
        wanted, bounds = request.wanted, request.bounds
        further = classes.of_one(wanted.flavor, bounds.project)
        each = {**usage.of_one(wanted.flavor), **further}
        rooms = [QuotaHeadroom(bounds.project, self._used(project_id, further))]
        if bounds.user is not None:
            rooms.append(QuotaHeadroom(bounds.of_user, self._used_by(project_id, user_id)))
        count = wanted.most
        for room in rooms:
            count = room.grant(each, wanted.least, count)
        if wanted.group is not None:
            self._group(wanted.group, project_id).join(count, bounds.of_user)
        total = {name: amount * count for name, amount in each.items()}
        for room in rooms:
            for name, amount in total.items():
                room.used[name] += amount
        self._entered.setdefault(project_id, Counter()).update(total)
        return count

    def close(self) -> None:
        """Write down what was entered."""
        for project_id, total in self._entered.items():
            usage.add(self._connection, project_id, total)

    def group_id(self, uuid: str) -> int:
        return self._groups[uuid].id

    def _used(self, project_id: str, further: Collection[str]) -> dict[str, int]:
        """Of the counters, and of these classes."""
        used = self._projects[project_id]
        used |= classes.used(self._connection, project_id, [name for name in further if name not in used])
        return used

    def _used_by(self, project_id: str, user_id: str) -> dict[str, int]:
        key = (project_id, user_id)
        if key not in self._users:
            self._users[key] = usage.used_by(self._connection, project_id, user_id)
        return self._users[key]

    def _group(self, uuid: str, project_id: str) -> _Group:
        if uuid not in self._groups:
            self._groups[uuid] = _lock_group(self._connection, uuid, project_id)
        group = self._groups[uuid]
        if group.project_id != project_id:
            raise _no_group(uuid)
        return group


@dataclass
class _Group:
    id: int
    project_id: str
    members: int

    def join(self, count: int, limits: Limits) -> None:
        refusal = "Quota exceeded, too many servers in group"
        require_room(limits, "server_group_members", self.members, count, refusal)
        self.members += count


def _row(
    origin: Origin, wanted: ServerTemplate, reservation_id: str, index: int, count: int
) -> dict[str, Any]:
    uuid = uuids.generate()
    suffix = f"-{index + 1}" if count > 1 else ""
    return {
        "uuid": uuid,
        "project_id": origin.project_id,
        "user_id": origin.user_id,
        "name": f"{wanted.name[: _MAX_NAME - len(suffix)]}{suffix}",
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


def _lock_group(connection: Connection, uuid: str, project_id: str) -> _Group:
    query = (
        sa.select(server_groups.c.id)
        .where(server_groups.c.uuid == uuid, server_groups.c.project_id == project_id)
        .with_for_update()
    )
    found = connection.execute(query).scalar_one_or_none()
    if found is None:
        raise _no_group(uuid)
    counted = sa.select(sa.func.count()).where(server_group_members.c.group_id == found)
    return _Group(found, project_id, connection.execute(counted).scalar_one())


def _no_group(uuid: str) -> ComputeError:
    return ComputeError(f"Instance group {uuid} could not be found.")
