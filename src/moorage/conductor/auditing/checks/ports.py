"""Ports that we made in the network service, held against servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import MEND, Drift, Suspect
from moorage.conductor.auditing import resting
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.db.among import among
from moorage.db.tables.compute import servers
from moorage.ledger.leasing import GIVE_BACK
from moorage.network.contract import MadePort, NetworkAccess, ServerPorts


class PortsCheck(AuditCheck):
    name = CheckName.PORTS
    compares = "ports that were made for servers, and servers"

    def look(self) -> Iterator[Portion]:
        done = 0
        if self._tools.network.reach is not NetworkAccess.ANYONE:
            return
        for page in self._tools.network.made_ports():
            done += len(page)
            yield Portion(self._suspects(page), done, done)

    def _suspects(self, page: Sequence[MadePort]) -> list[Suspect]:
        with self._tools.database.read() as connection:
            query = sa.select(servers.c.uuid, servers.c.request).where(
                among(connection, servers.c.uuid, sorted({port.server_uuid for port in page})),
                servers.c.deleted_at.is_(None),
            )
            known = {
                uuid: _known(ServerPorts.of(uuid, request)) for uuid, request in connection.execute(query)
            }
        return [
            Suspect(port.port_id, {"server": port.server_uuid})
            for port in page
            if port.port_id not in known.get(port.server_uuid, ())
        ]

    def judge(self, suspect: Suspect) -> Drift | None:
        """First what is there, then who knows of it: else it could be what an operation has just made."""
        port_id, uuid = suspect.subject, suspect.facts["server"]
        before = resting.one(self._tools.database, uuid)
        is_known = resting.is_known(self._tools.database, uuid)
        if before is None and is_known:
            return None
        (strays,) = self._tools.network.strays([ServerPorts(uuid, [])])
        if port_id not in strays:
            return None
        if not is_known:
            return Drift(
                suspect=suspect,
                sentence=f"port {port_id} was made for server {uuid}, which nobody knows",
                remedy="delete it; not if the database was restored, and the server is there",
            )
        holding = self._holding(uuid)
        if before is None or resting.one(self._tools.database, uuid) != before:
            return None
        if not before.is_deleted and port_id in _known(holding):
            return None
        state = "which is deleted" if before.is_deleted else "which does not know it"
        return Drift(
            suspect=suspect,
            sentence=f"port {port_id} was made for server {uuid}, {state}",
            remedy="delete it",
            safe=True,
            host=before.host or "",
            server_uuid=uuid,
            operation=GIVE_BACK if before.is_deleted else MEND,
        )

    def _holding(self, uuid: str) -> ServerPorts:
        with self._tools.database.read() as connection:
            query = sa.select(servers.c.request).where(servers.c.uuid == uuid)
            return ServerPorts.of(uuid, connection.execute(query).scalar_one_or_none() or {})

    def repair(self, drift: Drift) -> None:
        """Late: a port whose id no server knows never becomes a server's, since ids come only once."""
        uuid = drift.suspect.facts["server"]
        self._tools.network.drop(self._holding(uuid), drift.suspect.subject)


def _known(holding: ServerPorts) -> set[str]:
    return {port.id for port in holding.ports} | holding.brought
