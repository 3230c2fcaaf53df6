"""Ports that servers have, held against what the network service has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.compute.ports import changed_ports
from moorage.conductor.auditing import resting
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.db.tables.compute import servers
from moorage.network.contract import NetworkAccess, ServerPorts

_PAGE = 40


class LostPortsCheck(AuditCheck):
    name = CheckName.LOST_PORTS
    compares = "ports of servers, and what the network service has of them"

    def look(self) -> Iterator[Portion]:
        if self._tools.network.reach is not NetworkAccess.ANYONE:
            return
        last, done = 0, 0
        running = sa.and_(servers.c.host.is_not(None), servers.c.deleted_at.is_(None))
        with self._tools.database.read() as connection:
            counted = sa.select(sa.func.count()).select_from(servers).where(running)
            total = connection.execute(counted).scalar_one()
        query = sa.select(servers.c.id, servers.c.uuid, servers.c.request).where(running)
        while True:
            with self._tools.database.read() as connection:
                page = connection.execute(
                    query.where(servers.c.id > last).order_by(servers.c.id).limit(_PAGE)
                ).all()
            if not page:
                return
            last, done = page[-1].id, done + len(page)
            lost = self._lost([ServerPorts.of(row.uuid, row.request) for row in page])
            odd = [Suspect(row.uuid) for row, ids in zip(page, lost, strict=True) if ids]
            yield Portion(odd, done, max(done, total))

    def _lost(self, holdings: Sequence[ServerPorts]) -> list[list[str]]:
        """By server, the ports that it has, and that are gone."""
        seen = self._tools.network.look(holdings)
        return [
            sorted({port.id for port in holding.ports} - {port.id for port in ports})
            for holding, ports in zip(holdings, seen, strict=True)
        ]

    def judge(self, suspect: Suspect) -> Drift | None:
        uuid = suspect.subject
        before = resting.one(self._tools.database, uuid)
        if before is None or before.is_deleted or before.host is None:
            return None
        with self._tools.database.read() as connection:
            query = sa.select(servers.c.request).where(servers.c.uuid == uuid)
            holding = ServerPorts.of(uuid, connection.execute(query).scalar_one())
        (lost,) = self._lost([holding])
        if not lost or resting.one(self._tools.database, uuid) != before:
            return None
        return Drift(
            suspect=suspect,
            sentence=f"server {uuid} has port {', '.join(lost)}, which the network service does not",
            remedy="take it from the server",
            safe=True,
            fingerprint=" ".join(lost)[:255],
            host=before.host,
            server_uuid=uuid,
        )

    def repair(self, drift: Drift) -> None:
        """As after the network's own event: a conductor looks for itself, and an operation of the ledger
        takes the port from the host."""
        self._tools.database.transact(lambda connection: changed_ports.note(connection, [drift.server_uuid]))
