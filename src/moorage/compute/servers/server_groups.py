"""Server groups: servers that shall be together, or apart."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import NotFoundError
from moorage.compute.quotas import usage
from moorage.compute.quotas.overruns import require_room
from moorage.compute.quotas.quotas import UNLIMITED, Limits
from moorage.core import uuids
from moorage.db.among import among
from moorage.db.tables.compute import server_group_members, server_groups, servers

AFFINITY = "affinity"
ANTI_AFFINITY = "anti-affinity"
SOFT_AFFINITY = "soft-affinity"
SOFT_ANTI_AFFINITY = "soft-anti-affinity"


@dataclass(frozen=True)
class ServerGroup:
    id: int
    uuid: str
    project_id: str
    user_id: str
    name: str
    policy: str
    rules: dict[str, int]
    members: list[str] = field(default_factory=list)


_COLUMNS = tuple(server_groups.c[field.name] for field in fields(ServerGroup) if field.name != "members")


def find(connection: Connection, uuid: str, project_id: str | None = None) -> ServerGroup:
    """Of one project, or of any."""
    query = sa.select(*_COLUMNS).where(server_groups.c.uuid == uuid)
    if project_id is not None:
        query = query.where(server_groups.c.project_id == project_id)
    found = _read(connection, query)
    if not found:
        raise NotFoundError(f"Instance group {uuid} could not be found.")
    return found[0]


def listed(
    connection: Connection, project_id: str | None, *, limit: int | None = None, offset: int = 0
) -> list[ServerGroup]:
    """Those of a project, or all; the oldest first."""
    query = sa.select(*_COLUMNS).order_by(server_groups.c.id).limit(limit).offset(offset)
    if project_id is not None:
        query = query.where(server_groups.c.project_id == project_id)
    return _read(connection, query)


def _read(connection: Connection, query: sa.Select[Any]) -> list[ServerGroup]:
    groups = [ServerGroup(*row) for row in connection.execute(query)]
    by_id = {group.id: group for group in groups}
    members = (
        sa.select(server_group_members.c.group_id, servers.c.uuid)
        .join_from(server_group_members, servers)
        .where(
            among(connection, server_group_members.c.group_id, list(by_id)), servers.c.deleted_at.is_(None)
        )
        .order_by(servers.c.id)
    )
    for group_id, uuid in connection.execute(members) if groups else ():
        by_id[group_id].members.append(uuid)
    return groups


def create(
    connection: Connection,
    *,
    project_id: str,
    user_id: str,
    name: str,
    policy: str,
    rules: dict[str, int],
    limits: Limits,
) -> ServerGroup:
    """The project's groups are counted under its lock."""
    if limits["server_groups"] != UNLIMITED:
        usage.lock(connection, project_id)
        others = count(connection, project_id)
        require_room(limits, "server_groups", others, 1, "Quota exceeded, too many server groups.")
    uuid = uuids.generate()
    connection.execute(
        sa.insert(server_groups).values(
            uuid=uuid, project_id=project_id, user_id=user_id, name=name, policy=policy, rules=rules
        )
    )
    return find(connection, uuid)


def delete(connection: Connection, group: ServerGroup) -> None:
    connection.execute(sa.delete(server_groups).where(server_groups.c.id == group.id))


def count(connection: Connection, project_id: str, user_id: str | None = None) -> int:
    query = sa.select(sa.func.count()).where(server_groups.c.project_id == project_id)
    if user_id is not None:
        query = query.where(server_groups.c.user_id == user_id)
    return int(connection.execute(query).scalar_one())
