"""The ledger, held against servers: work that nobody will look at, and rows of no server."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.core.clock import utcnow
from moorage.db.tables.compute import actions, operations, servers, traces
from moorage.db.tables.moves import migrations

_OF_SERVERS = {str(table.name): table for table in (traces, actions, operations, migrations)}
_MOST = 1_000
_FORGOTTEN = sa.and_(
    operations.c.finished_at.is_(None), operations.c.due_at.is_(None), operations.c.lease.is_(None)
)
"""Nobody has it, and nobody is going to look at it."""


class LedgerCheck(AuditCheck):
    name = CheckName.LEDGER
    compares = "operations, traces and actions, and their servers"

    def look(self) -> Iterator[Portion]:
        query = sa.select(operations.c.id).where(_FORGOTTEN).order_by(operations.c.id).limit(_MOST)
        with self._tools.database.read() as connection:
            forgotten = connection.execute(query).scalars().all()
        yield Portion([Suspect(f"operation {one}", {"operation": one}) for one in forgotten], 1, 2)
        yield Portion([Suspect(name, {"table": name}) for name in _OF_SERVERS], 2, 2)

    def judge(self, suspect: Suspect) -> Drift | None:
        if "table" in suspect.facts:
            return self._rows_of_no_server(suspect)
        query = (
            sa.select(operations.c.kind, operations.c.step, servers.c.uuid)
            .join_from(operations, servers, operations.c.server_id == servers.c.id)
            .where(operations.c.id == suspect.facts["operation"], _FORGOTTEN)
        )
        with self._tools.database.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return Drift(
            suspect=suspect,
            sentence=f"operation {suspect.facts['operation']} ({row.kind}, {row.step}) of server "
            f"{row.uuid} is not at its end, and not due at any time",
            remedy="make it due now",
            safe=True,
            server_uuid=row.uuid,
        )

    def _rows_of_no_server(self, suspect: Suspect) -> Drift | None:
        """There are none where the database watches over it; a restored one may not have."""
        table = _OF_SERVERS[suspect.facts["table"]]
        with self._tools.database.read() as connection:
            count = connection.execute(
                sa.select(sa.func.count()).select_from(table).where(_of_no_server(table))
            ).scalar_one()
        if not count:
            return None
        return Drift(
            suspect=suspect,
            sentence=f"{count} rows of {table.name} are of servers that there are not",
            remedy="delete them",
            safe=True,
        )

    def repair(self, drift: Drift) -> None:
        """Whatever is not so any more stays as it is."""
        facts = drift.suspect.facts

        def mend(connection: Connection) -> None:
            if "table" in facts:
                table = _OF_SERVERS[facts["table"]]
                connection.execute(sa.delete(table).where(_of_no_server(table)))
                return
            due = sa.update(operations).where(operations.c.id == facts["operation"], _FORGOTTEN)
            connection.execute(due.values(due_at=utcnow()))

        self._tools.database.transact(mend)


def _of_no_server(table: sa.Table) -> sa.ColumnElement[bool]:
    return ~sa.exists().where(servers.c.id == table.c.server_id)
