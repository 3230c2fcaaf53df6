"""What a project uses of its quotas: one counter row a project, locked by whoever changes it.

The lock is what makes quotas hold when many requests come at once: the second one waits, and then counts what
the first one took.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.errors import QuotaExceeded
from moorage.compute.quotas import overruns
from moorage.compute.quotas.overruns import Overrun, UnifiedBounds
from moorage.compute.quotas.quotas import UNLIMITED, Limits
from moorage.compute.servers.states import VmState
from moorage.db.tables.compute import quota_usage, servers
from moorage.db.tables.moves import migrations
from moorage.db.upsert import insert_if_absent

COUNTED = ("instances", "cores", "ram")
UNCOUNTED = "uncounted"
"""In the request of a server: it has given its part of the quota back already, since it is deleted softly."""


@dataclass(frozen=True)
class QuotaHeadroom:
    """The limits of a project, or of one user in it, and what is used of them."""

    limits: Limits
    used: dict[str, int]

    def grant(self, each: Mapping[str, int], least: int, most: int) -> int:
        """How many of up to `most` servers of a size fit; fewer than `least` are refused."""
        fitting = self.fitting(each)
        if fitting is None or fitting >= most:
            return most
        if fitting < least:
            raise self.refusal(each, least, most)
        return fitting

    def fitting(self, each: Mapping[str, int]) -> int | None:
        """How many more servers of this size fit; None if nothing bounds them."""
        bounds = [
            max(self.limits[name] - self.used[name], 0) // amount
            for name, amount in each.items()
            if self.limits[name] != UNLIMITED and amount > 0
        ]
        return min(bounds, default=None)

    def refusal(self, each: Mapping[str, int], least: int, most: int) -> QuotaExceeded:
        if isinstance(self.limits, UnifiedBounds):
            return overruns.over_limit(self.limits.project_id, self._overruns(each, most))
        over = [overrun.name for overrun in self._overruns(each, least)]
        asked = {name: str(each[name] * most) for name in COUNTED}
        asked["instances"] = str(least) if least == most else f"{least}-{most}"
        names = ", ".join(over)
        wanted = ", ".join(asked[name] for name in over)
        used = ", ".join(str(self.used[name]) for name in over)
        allowed = ", ".join(str(self.limits[name]) for name in over)
        return QuotaExceeded(
            f"Quota exceeded for {names}: Requested {wanted}, but already used {used} of {allowed} {names}"
        )

    def _overruns(self, each: Mapping[str, int], count: int) -> list[Overrun]:
        return [
            Overrun(name, self.limits[name], self.used[name], each[name] * count)
            for name in sorted(each)
            if overruns.exceeds(self.limits[name], self.used[name] + each[name] * count)
        ]


def of_one(flavor: Mapping[str, Any]) -> dict[str, int]:
    """What one server of this flavor uses."""
    return {"instances": 1, "cores": int(flavor["vcpus"]), "ram": int(flavor["ram"])}


def give_back(connection: Connection, gone: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
    """Servers are gone: the project and the flavor of each. Projects are locked in their order."""
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for project_id, flavor in gone:
        totals[project_id].update(of_one(flavor))
    for project_id, total in sorted(totals.items()):
        add(connection, project_id, total, -1)


def of_project(connection: Connection, project_id: str) -> dict[str, int]:
    columns = [quota_usage.c[name] for name in COUNTED]
    row = connection.execute(sa.select(*columns).where(quota_usage.c.project_id == project_id)).one_or_none()
    return dict(zip(COUNTED, row if row is not None else (0, 0, 0), strict=True))


def lock(connection: Connection, project_id: str) -> dict[str, int]:
    """What the project uses; nobody else changes it until the transaction ends."""
    row = connection.execute(_LOCK, {"project": project_id}).one_or_none()
    if row is None:
        connection.execute(insert_if_absent(connection, quota_usage).values(project_id=project_id))
        row = connection.execute(_LOCK, {"project": project_id}).one()
    return dict(zip(COUNTED, row, strict=True))


_LOCK = (
    sa.select(*(quota_usage.c[name] for name in COUNTED))
    .where(quota_usage.c.project_id == sa.bindparam("project"))
    .with_for_update()
)


def add(connection: Connection, project_id: str, each: Mapping[str, int], count: int = 1) -> None:
    """Count servers of a size for a project that has used something before."""
    amounts = {f"more_{name}": each[name] * count for name in COUNTED}
    connection.execute(_ADD, {"project": project_id, **amounts})


_ADD = (
    sa.update(quota_usage)
    .where(quota_usage.c.project_id == sa.bindparam("project"))
    .values({name: quota_usage.c[name] + sa.bindparam(f"more_{name}") for name in COUNTED})
)


def used_by(connection: Connection, project_id: str, user_id: str) -> dict[str, int]:
    """Counted from the servers of one user, without those that are deleted softly."""
    vcpus = sa.func.sum(servers.c.flavor["vcpus"].as_integer())
    ram = sa.func.sum(servers.c.flavor["ram"].as_integer())
    query = sa.select(sa.func.count(), sa.func.coalesce(vcpus, 0), sa.func.coalesce(ram, 0)).where(
        servers.c.project_id == project_id,
        servers.c.user_id == user_id,
        servers.c.deleted_at.is_(None),
        servers.c.vm_state != VmState.SOFT_DELETED.value,
    )
    return dict(zip(COUNTED, connection.execute(query).one(), strict=True))


def recounted(connection: Connection, project_id: str) -> dict[str, int]:
    """What the counters should say: its servers, and what moves have reserved for larger ones."""
    taken = sa.select(
        sa.func.count(),
        sa.func.coalesce(sa.func.sum(servers.c.flavor["vcpus"].as_integer()), 0),
        sa.func.coalesce(sa.func.sum(servers.c.flavor["ram"].as_integer()), 0),
    ).where(
        servers.c.project_id == project_id,
        servers.c.deleted_at.is_(None),
        ~sa.func.coalesce(servers.c.request[UNCOUNTED].as_boolean(), sa.false()),
    )
    reserved = sa.select(
        *(sa.func.coalesce(sa.func.sum(migrations.c.reserved[name].as_integer()), 0) for name in COUNTED)
    ).where(migrations.c.project_id == project_id, migrations.c.active)
    both = zip(connection.execute(taken).one(), connection.execute(reserved).one(), strict=True)
    return dict(zip(COUNTED, (int(one) + int(other) for one, other in both), strict=True))


def growth(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    """What a server of another flavor uses more; what it uses less is given back when it is smaller."""
    old, new = of_one(before), of_one(after)
    return {name: max(0, new[name] - old[name]) for name in COUNTED}


def resized(
    connection: Connection,
    project_id: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    reserved: Mapping[str, int],
) -> None:
    """A server has another flavor now; what was reserved for it counts no longer."""
    old, new = of_one(before), of_one(after)
    change = {name: new[name] - old[name] - reserved.get(name, 0) for name in COUNTED}
    if any(change.values()):
        add(connection, project_id, change)
