"""Moves that count as under way, held against servers that are gone."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.compute.moves import migrations as moves
from moorage.conductor.auditing import resting
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.db.tables.compute import servers
from moorage.db.tables.moves import migrations


class MovesCheck(AuditCheck):
    name = CheckName.MOVES
    compares = "moves that count as under way, and servers"

    def look(self) -> Iterator[Portion]:
        with self._tools.database.read() as connection:
            found = connection.execute(_OF_DELETED).all()
        yield Portion([Suspect(row.uuid, {"server": row.server_uuid}) for row in found], 1, 1)

    def judge(self, suspect: Suspect) -> Drift | None:
        server = resting.one(self._tools.database, suspect.facts["server"])
        if server is None or not server.is_deleted:
            return None
        with self._tools.database.read() as connection:
            found = connection.execute(_OF_DELETED.where(migrations.c.uuid == suspect.subject)).one_or_none()
        if found is None:
            return None
        return Drift(
            suspect=suspect,
            sentence=f"migration {suspect.subject} is {found.status}: its server {server.uuid} is deleted",
            remedy="end it",
            safe=True,
            server_uuid=server.uuid,
        )

    def repair(self, drift: Drift) -> None:
        """A deleted server never moves again, so late is the same."""

        def end(connection: Connection) -> None:
            query = sa.select(servers.c.id).where(servers.c.uuid == drift.server_uuid).with_for_update()
            move = moves.active(connection, connection.execute(query).scalar_one())
            if move is not None:
                moves.end_with_server(connection, move)

        self._tools.database.transact(end)


_OF_DELETED = (
    sa.select(migrations.c.uuid, migrations.c.server_uuid, migrations.c.status)
    .join_from(migrations, servers, migrations.c.server_id == servers.c.id)
    .where(migrations.c.active, servers.c.deleted_at.is_not(None))
    .limit(1_000)
)
