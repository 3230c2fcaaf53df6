"""Operations of servers that have nothing else to them."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.core import uuids
from moorage.db.database import Database
from moorage.db.tables.compute import servers
from moorage.ledger import leasing, queue
from moorage.ledger.operation import Operation


def make_server(database: Database) -> int:
    row = {
        "uuid": uuids.generate(),
        "project_id": "p",
        "user_id": "u",
        "name": "s",
        "hostname": "s",
        "reservation_id": "r-1",
        "flavor": {},
        "flavorid": "1",
        "vm_state": "building",
    }
    with database.write() as connection:
        return int(connection.execute(sa.insert(servers).values(row).returning(servers.c.id)).scalar_one())


def enqueue(database: Database, server_id: int, kind: str = "build") -> int:
    return database.transact(lambda connection: queue.enqueue(connection, server_id, kind, {"n": 1}))


def lease(database: Database, owner: str, seconds: float = 60) -> list[Operation]:
    return database.transact(lambda connection: leasing.lease(connection, owner, ["build"], 10, seconds))
