"""What a project uses of its quotas: one counter row a project, locked by whoever changes it.

The lock is what makes quotas hold when many requests come at once: the second one waits, and then counts what
the first one took.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

from moorage.compute.errors import QuotaExceeded
from moorage.compute.quotas import UNLIMITED, Limits
from moorage.db.tables.compute import quota_usage, server_group_members, servers

COUNTED = ("instances", "cores", "ram")


@dataclass(frozen=True)
class Room:
    """The limits of a project, or of one user in it, and what is used of them."""

    limits: Limits
    used: Mapping[str, int]

    def fitting(self, each: Mapping[str, int]) -> int | None:
        """How many more servers of this size fit; None if nothing bounds them."""
        bounds = [
            max(self.limits[name] - self.used[name], 0) // each[name]
            for name in COUNTED
            if self.limits[name] != UNLIMITED and each[name] > 0
        ]
        return min(bounds, default=None)

    def refusal(self, each: Mapping[str, int], least: int, most: int) -> QuotaExceeded:
        over = [
            name
            for name in sorted(COUNTED)
            if self.limits[name] != UNLIMITED and self.used[name] + each[name] * least > self.limits[name]
        ]
        asked = {name: str(each[name] * most) for name in COUNTED}
        asked["instances"] = str(least) if least == most else f"{least}-{most}"
        names = ", ".join(over)
        wanted = ", ".join(asked[name] for name in over)
        used = ", ".join(str(self.used[name]) for name in over)
        allowed = ", ".join(str(self.limits[name]) for name in over)
        return QuotaExceeded(
            f"Quota exceeded for {names}: Requested {wanted}, but already used {used} of {allowed} {names}"
        )


def of_one(flavor: Mapping[str, Any]) -> dict[str, int]:
    """What one server of this flavor uses."""
    return {"instances": 1, "cores": int(flavor["vcpus"]), "ram": int(flavor["ram"])}


def take(
    connection: Connection,
    project_id: str,
    flavor: Mapping[str, Any],
    least: int,
    most: int,
    limits: Limits,
    user: tuple[str, Limits] | None = None,
) -> int:
    """Count up to `most` servers against the quotas, and at the least `least`; how many were counted.

    `user` is one with limits of their own; what they use is counted from their servers.
    """
    each = of_one(flavor)
    rooms = [Room(limits, lock(connection, project_id))]
    if user is not None:
        user_id, user_limits = user
        rooms.append(Room({**limits, **user_limits}, used_by(connection, project_id, user_id)))
    count = most
    for room in rooms:
        fitting = room.fitting(each)
        if fitting is not None and fitting < count:
            if fitting < least:
                raise room.refusal(each, least, most)
            count = fitting
    _add(connection, project_id, each, count)
    return count


def give_back(connection: Connection, project_id: str, flavor: Mapping[str, Any]) -> None:
    """A server is gone."""
    _add(connection, project_id, of_one(flavor), -1)


def join_group(connection: Connection, group_id: int, server_ids: list[int], limit: int) -> None:
    """Put servers into a server group whose row the caller holds locked, unless it gets too large."""
    query = sa.select(sa.func.count()).where(server_group_members.c.group_id == group_id)
    members = connection.execute(query).scalar_one()
    if limit != UNLIMITED and members + len(server_ids) > limit:
        raise QuotaExceeded("Quota exceeded, too many servers in group")
    rows = [{"group_id": group_id, "server_id": server_id} for server_id in server_ids]
    connection.execute(sa.insert(server_group_members), rows)


def of_project(connection: Connection, project_id: str) -> dict[str, int]:
    columns = [quota_usage.c[name] for name in COUNTED]
    row = connection.execute(sa.select(*columns).where(quota_usage.c.project_id == project_id)).one_or_none()
    return dict(zip(COUNTED, row if row is not None else (0, 0, 0), strict=True))


def lock(connection: Connection, project_id: str) -> dict[str, int]:
    """What the project uses; nobody else changes it until the transaction ends."""
    columns = [quota_usage.c[name] for name in COUNTED]
    query = sa.select(*columns).where(quota_usage.c.project_id == project_id).with_for_update()
    row = connection.execute(query).one_or_none()
    if row is None:
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        blank = dialect.insert(quota_usage).values(project_id=project_id).on_conflict_do_nothing()
        connection.execute(blank)
        row = connection.execute(query).one()
    return dict(zip(COUNTED, row, strict=True))


def _add(connection: Connection, project_id: str, each: Mapping[str, int], count: int) -> None:
    connection.execute(
        sa.update(quota_usage)
        .where(quota_usage.c.project_id == project_id)
        .values({name: quota_usage.c[name] + each[name] * count for name in COUNTED})
    )


def used_by(connection: Connection, project_id: str, user_id: str) -> dict[str, int]:
    """Counted from the servers of one user."""
    vcpus = sa.func.sum(servers.c.flavor["vcpus"].as_integer())
    ram = sa.func.sum(servers.c.flavor["ram"].as_integer())
    query = sa.select(sa.func.count(), sa.func.coalesce(vcpus, 0), sa.func.coalesce(ram, 0)).where(
        servers.c.project_id == project_id, servers.c.user_id == user_id, servers.c.deleted_at.is_(None)
    )
    return dict(zip(COUNTED, connection.execute(query).one(), strict=True))
