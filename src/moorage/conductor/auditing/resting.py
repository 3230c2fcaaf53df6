"""Servers at rest: nobody works on them, so that what they hold should be what their rows say."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.audits.findings import MEND
from moorage.core.clock import utcnow
from moorage.db import era
from moorage.db.among import among
from moorage.db.database import Database
from moorage.db.tables.compute import operations, servers
from moorage.ledger.operation import FIRST_STEP


class RestingServer(NamedTuple):
    """Two that are equal are the same server with nothing done to it in between."""

    id: int
    uuid: str
    host: str | None
    node_uuid: str | None
    vm_state: str
    is_deleted: bool
    newest_operation: int | None


def busy(least: int = 0) -> sa.ColumnElement[bool]:
    """Something is under way for a server: also what was cancelled, as long as somebody may be at it, but not
    what nobody begins with before its time, and not what waits because it came before the operation `least`.
    Repairs look for themselves."""
    now = utcnow()
    later = sa.and_(operations.c.step == FIRST_STEP, operations.c.due_at > now, operations.c.lease.is_(None))
    unfinished = sa.and_(operations.c.finished_at.is_(None), ~sa.func.coalesce(later, sa.false()))
    return sa.exists().where(
        operations.c.server_id == servers.c.id,
        operations.c.kind != MEND,
        operations.c.id >= least,
        sa.or_(unfinished, operations.c.leased_until > now),
    )


_NEWEST = (
    sa.select(sa.func.max(operations.c.id))
    .where(operations.c.server_id == servers.c.id)
    .correlate(servers)
    .scalar_subquery()
)


def among_them(connection: Connection, uuids: Collection[str]) -> dict[str, RestingServer]:
    query = sa.select(
        servers.c.id,
        servers.c.uuid,
        servers.c.host,
        servers.c.node_uuid,
        servers.c.vm_state,
        servers.c.deleted_at.is_not(None),
        _NEWEST,
    ).where(among(connection, servers.c.uuid, uuids), ~busy(era.current(connection).least))
    return {row.uuid: RestingServer(*row) for row in connection.execute(query)}


def one(database: Database, uuid: str) -> RestingServer | None:
    with database.read() as connection:
        return among_them(connection, [uuid]).get(uuid)


def is_known(database: Database, uuid: str) -> bool:
    with database.read() as connection:
        return connection.execute(sa.select(servers.c.id).where(servers.c.uuid == uuid)).first() is not None
