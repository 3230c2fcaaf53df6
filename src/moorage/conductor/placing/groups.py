"""Server groups have the last word: a place that was right when it was chosen may be taken by now.

Conductors decide at the same time, and each sees only what the others have written down. So before a member
goes anywhere, its place is agreed on under the group's lock, one member after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.conductor.engine.work import Work
from moorage.conductor.placing.placed import Placing
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import server_group_members, server_groups
from moorage.scheduler.server_group import ServerGroupPolicy


def refused(database: Database, batch: Sequence[Work[Placing]]) -> set[int]:
    """The operations whose servers their groups will not have where they were placed."""
    members = [work for work in batch if work.server.request.get("group")]
    if not members:
        return set()
    return database.transact(lambda connection: _agree(connection, members))


def leave(connection: Connection, server_id: int) -> None:
    """The member goes elsewhere: its place is free again."""
    mine = server_group_members.c.server_id == server_id
    connection.execute(sa.update(server_group_members).where(mine).values(node_uuid=None))


def stay(connection: Connection, server_id: int, node_uuid: str) -> None:
    """The member goes nowhere after all."""
    mine = server_group_members.c.server_id == server_id
    connection.execute(sa.update(server_group_members).where(mine).values(node_uuid=node_uuid))


def _agree(connection: Connection, works: Sequence[Work[Placing]]) -> set[int]:
    uuids = {work.server.request["group"] for work in works}
    query = sa.select(server_groups).where(among(connection, server_groups.c.uuid, uuids))
    groups = {
        row.uuid: row for row in connection.execute(query.order_by(server_groups.c.id).with_for_update())
    }
    broken = set()
    for work in works:
        group = groups.get(work.server.request["group"])
        if group is None:
            continue
        node_uuid = work.state.place.node_uuid
        if not _allowed(_others(connection, group.id, work.server.id), group, node_uuid):
            broken.add(work.operation.id)
            continue
        connection.execute(
            sa.update(server_group_members)
            .where(
                server_group_members.c.group_id == group.id,
                server_group_members.c.server_id == work.server.id,
            )
            .values(node_uuid=node_uuid)
        )
    return broken


def _others(connection: Connection, group_id: int, server_id: int) -> Counter[str]:
    """How many other members have been agreed on, by node."""
    table = server_group_members
    query = sa.select(table.c.node_uuid).where(
        table.c.group_id == group_id, table.c.server_id != server_id, table.c.node_uuid.is_not(None)
    )
    return Counter(connection.execute(query).scalars())


def _allowed(others: Counter[str], group: sa.Row[tuple[object, ...]], node_uuid: str) -> bool:
    if group.policy == ServerGroupPolicy.ANTI_AFFINITY:
        return others[node_uuid] < int(group.rules.get("max_server_per_host", 1))
    if group.policy == ServerGroupPolicy.AFFINITY:
        return not others or node_uuid in others
    return True
