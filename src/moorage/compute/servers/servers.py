"""Servers: finding one, changing one, and giving back what a deleted one had."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from oslo_utils.uuidutils import is_uuid_like
from sqlalchemy.engine import Connection

from moorage.compute.moves import migrations
from moorage.compute.quotas import usage
from moorage.compute.servers.server import COLUMNS, Server, from_row
from moorage.compute.servers.server_errors import ServerNotFound
from moorage.compute.servers.states import PowerNumber, VmState
from moorage.core.clock import utcnow
from moorage.db.among import one_of
from moorage.db.tables.compute import server_group_members, server_groups, servers


def find(
    connection: Connection, uuid: str, *, project_id: str | None = None, deleted: bool = False
) -> Server:
    """One server; `project_id` hides those of other projects, `deleted` lets deleted ones be seen."""
    return _one(connection, _select(uuid, project_id, deleted), uuid)


def lock(connection: Connection, uuid: str, *, project_id: str | None = None) -> Server:
    """As `find`, but nobody else changes it until the transaction ends."""
    return _one(connection, _select(uuid, project_id, False).with_for_update(), uuid)


_BY_ID = sa.select(*COLUMNS).where(one_of(servers.c.id, "ids"))


def by_id(connection: Connection, ids: Collection[int]) -> dict[int, Server]:
    """As they are now, deleted ones too."""
    found = (from_row(row) for row in connection.execute(_BY_ID, {"ids": ids}))
    return {server.id: server for server in found}


def _select(uuid: str, project_id: str | None, deleted: bool) -> sa.Select[Any]:
    query = sa.select(*COLUMNS).where(servers.c.uuid == uuid)
    if project_id is not None:
        query = query.where(servers.c.project_id == project_id)
    return query if deleted else query.where(servers.c.deleted_at.is_(None))


def _one(connection: Connection, query: sa.Select[Any], uuid: str) -> Server:
    row = connection.execute(query).one_or_none() if is_uuid_like(uuid) else None
    if row is None:
        raise ServerNotFound(uuid)
    return from_row(row)


def update(connection: Connection, server_id: int, **columns: Any) -> datetime:
    """Set columns; the moment that now is the server's `updated`."""
    now = utcnow()
    values = {servers.c.updated_at: now, **_settable(columns)}
    connection.execute(sa.update(servers).where(servers.c.id == server_id).values(values))
    return now


def set_state(
    connection: Connection,
    server_id: int,
    *,
    vm_state: str | None = None,
    task_state: str | None,
    **columns: Any,
) -> None:
    """Say what a server is and what is being done to it; without `vm_state` it stays what it is."""
    if vm_state is not None:
        columns["vm_state"] = str(vm_state)
    update(connection, server_id, task_state=None if task_state is None else str(task_state), **columns)


def _settable(columns: dict[str, Any]) -> dict[Any, Any]:
    """`metadata` is no keyword that SQLAlchemy would keep apart from its own, so columns go by object."""
    return {servers.c[name]: value for name, value in columns.items()}


_MARK_DELETED = (
    sa.update(servers)
    .where(one_of(servers.c.id, "ids"), servers.c.deleted_at.is_(None))
    .values(
        vm_state=VmState.DELETED,
        task_state=None,
        power_state=PowerNumber.NONE,
        addresses={},
        terminated_at=sa.bindparam("now"),
        deleted_at=sa.bindparam("now"),
        updated_at=sa.bindparam("now"),
    )
    .returning(servers.c.id, servers.c.project_id, servers.c.flavor, servers.c.request)
)
_LEAVE_GROUPS = sa.delete(server_group_members).where(one_of(server_group_members.c.server_id, "ids"))


def mark_deleted(connection: Connection, server_ids: Sequence[int]) -> None:
    """The end: nothing is left of the servers but their records. Said twice, it gives back once."""
    gone = connection.execute(_MARK_DELETED, {"ids": server_ids, "now": utcnow()}).all()
    if not gone:
        return
    ids = [row.id for row in gone]
    connection.execute(_LEAVE_GROUPS, {"ids": ids})
    usage.give_back(
        connection, [(row.project_id, row.flavor) for row in gone if not row.request.get(usage.UNCOUNTED)]
    )
    moves = migrations.active_of(connection, ids)
    for row in sorted((row for row in gone if row.id in moves), key=lambda row: str(row.project_id)):
        move = moves[row.id]
        usage.resized(connection, row.project_id, row.flavor, row.flavor, move.reserved)
        migrations.end_with_server(connection, move)


def count_again(connection: Connection, server: Server) -> None:
    """A server that was deleted softly is back: it uses its part of the quota, if it did not before."""
    if server.request.get(usage.UNCOUNTED):
        usage.add(connection, server.project_id, usage.of_one(server.flavor))
        request = {name: value for name, value in server.request.items() if name != usage.UNCOUNTED}
        update(connection, server.id, request=request)


def groups_of(connection: Connection, server_id: int) -> list[str]:
    """The UUIDs of the server groups that it is in: one at the most."""
    query = (
        sa.select(server_groups.c.uuid)
        .join_from(server_group_members, server_groups)
        .where(server_group_members.c.server_id == server_id)
    )
    return list(connection.execute(query).scalars())
