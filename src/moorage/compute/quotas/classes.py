"""What servers use of resource classes that have a limit of their own in Keystone.

Servers, processors and memory have counters. What is left is counted from the flavors of the project's
servers, and only where a limit asks for it; under the lock of the counters, so that nobody else adds a server
meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.quotas.overruns import CLASS, UNIFIED_NAMES, UnifiedBounds
from moorage.compute.quotas.quotas import UNLIMITED, Limits
from moorage.compute.servers.states import VmState
from moorage.db.tables.compute import servers
from moorage.db.tables.moves import migrations
from moorage.scheduler.errors import SchedulingError
from moorage.scheduler.needs import Needs

_COUNTERS = frozenset(UNIFIED_NAMES.values())
_ARRIVED = ("finished", "confirming")
"""In these states of a move the server has its new flavor, and what the old one had more is free."""


def of_one(flavor: Mapping[str, Any], limits: Limits) -> dict[str, int]:
    """What one server uses of the classes that these limits bound; by Keystone's names."""
    if not isinstance(limits, UnifiedBounds):
        return {}
    return {name: amount for name, amount in _amounts(flavor).items() if limits[name] != UNLIMITED}


def growth(before: Mapping[str, Any], after: Mapping[str, Any], limits: Limits) -> dict[str, int]:
    """What a server of another flavor uses more of them."""
    old = _amounts(before)
    more = {name: amount - old[name] for name, amount in of_one(after, limits).items()}
    return {name: amount for name, amount in more.items() if amount > 0}


def used(connection: Connection, project_id: str, names: Collection[str]) -> dict[str, int]:
    """By all servers of a project; those in mid-move with the larger of their two flavors."""
    if not names:
        return {}
    total: Counter[str] = Counter()
    for flavor, old, new, status in connection.execute(_FLAVORS, {"project": project_id}):
        amounts = _amounts(flavor)
        if status is not None and status not in _ARRIVED:
            amounts = _amounts(old) | _amounts(new)
        total.update(amounts)
    return {name: total[name] for name in names}


_FLAVORS = (
    sa.select(servers.c.flavor, migrations.c.old_flavor, migrations.c.new_flavor, migrations.c.status)
    .select_from(
        servers.outerjoin(
            migrations, sa.and_(migrations.c.server_id == servers.c.id, migrations.c.active.is_(True))
        )
    )
    .where(
        servers.c.project_id == sa.bindparam("project"),
        servers.c.deleted_at.is_(None),
        servers.c.vm_state != VmState.SOFT_DELETED.value,
    )
)


def _amounts(flavor: Mapping[str, Any]) -> Counter[str]:
    """Of a flavor that makes no sense nothing: no server of it will ever run."""
    amounts: Counter[str] = Counter()
    try:
        groups = Needs.of(flavor).groups
    except SchedulingError:
        return amounts
    for group in groups:
        amounts.update({CLASS + name: amount for name, amount in group.resources.items()})
    return Counter({name: amount for name, amount in amounts.items() if name not in _COUNTERS})
