"""Servers that the drivers of hosts have, held against those that should be there."""

from __future__ import annotations

import sqlalchemy as sa

from moorage.bus.contract import SAY_AGAIN, Task
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.compute.servers import lost_machines
from moorage.compute.servers.states import VmState
from moorage.conductor.agents import observations
from moorage.conductor.auditing import asking, resting
from moorage.conductor.auditing.host_by_host import HostByHostCheck
from moorage.conductor.auditing.resting import RestingServer
from moorage.db import era
from moorage.db.among import among
from moorage.db.tables.compute import servers

_PRESENT = frozenset(
    {VmState.ACTIVE, VmState.STOPPED, VmState.PAUSED, VmState.SUSPENDED, VmState.RESCUED, VmState.RESIZED}
)
"""States in which the driver of its host has a server."""


class HostServersCheck(HostByHostCheck):
    name = CheckName.HOST_SERVERS
    compares = "servers that hosts have, and those that should be there"

    def _suspects(self, host: str) -> list[Suspect]:
        there = set(asking.holdings(self._tools.agents, host).servers)
        with self._tools.database.read() as connection:
            here = sa.and_(servers.c.host == host, servers.c.deleted_at.is_(None))
            known = sa.select(servers.c.uuid, here).where(
                sa.or_(here, among(connection, servers.c.uuid, sorted(there)))
            )
            rows: dict[str, bool] = dict(connection.execute(known).all())
        wrong = [uuid for uuid in there if not rows.get(uuid)]
        missing = [uuid for uuid, is_here in rows.items() if is_here and uuid not in there]
        return [
            Suspect(f"{uuid} {host}", {"server": uuid, "host": host}) for uuid in sorted([*wrong, *missing])
        ]

    def judge(self, suspect: Suspect) -> Drift | None:
        uuid, host = suspect.facts["server"], suspect.facts["host"]
        before = resting.one(self._tools.database, uuid)
        is_known = resting.is_known(self._tools.database, uuid)
        if (before is None and is_known) or host not in self._tools.hosts.up():
            return None
        is_there = uuid in asking.holdings(self._tools.agents, host, [uuid]).servers
        if before is not None and resting.one(self._tools.database, uuid) != before:
            return None
        if before is None:
            return self._unknown(suspect) if is_there else None
        said = self._said(before, host, is_there=is_there)
        if said is None:
            return None
        sentence, remedy, is_safe = said
        return Drift(
            suspect=suspect,
            sentence=sentence,
            remedy=remedy,
            safe=is_safe,
            host=host,
            server_uuid=uuid,
        )

    def _said(self, server: RestingServer, host: str, *, is_there: bool) -> tuple[str, str, bool] | None:
        """Sentence, remedy, and whether that is safe."""
        if is_there and (server.is_deleted or server.host != host):
            if self._is_moving_through(server.uuid, host):
                return None
            where = "is deleted" if server.is_deleted else f"is on {server.host or 'no host'}"
            sentence = f"host {host} has server {server.uuid}, which {where}"
            if self._is_held():
                return f"{sentence}; it stays there until the restored database is released", "", False
            return sentence, "have the host discard it", True
        if not is_there and server.host == host and not server.is_deleted and server.vm_state in _PRESENT:
            sentence = f"host {host} does not have server {server.uuid}, which is {server.vm_state} there"
            return sentence, "put the server into error", False
        return None

    def _is_held(self) -> bool:
        with self._tools.database.read() as connection:
            return era.current(connection).is_held

    def _is_moving_through(self, uuid: str, host: str) -> bool:
        with self._tools.database.read() as connection:
            query = sa.select(servers.c.id).where(servers.c.uuid == uuid, observations.moving_through(host))
            return connection.execute(query).first() is not None

    def _unknown(self, suspect: Suspect) -> Drift:
        """It may be another cloud's, or our database may be older than it."""
        uuid, host = suspect.facts["server"], suspect.facts["host"]
        sentence = f"host {host} has server {uuid}, which nobody knows: see `moorage server`"
        return Drift(suspect=suspect, sentence=sentence, host=host)

    def repair(self, drift: Drift) -> None:
        """The host says all that it has, and is told then what to discard, as after every start. Late, of a
        server that is missing: whoever sees it there takes it out of its error again."""
        server = resting.one(self._tools.database, drift.suspect.facts["server"])
        if server is not None and server.host == drift.host and not server.is_deleted:
            self._tools.database.transact(
                lambda connection: lost_machines.lose_missing(connection, drift.host, server.uuid)
            )
            return
        self._tools.cast(drift.host, [Task(0, "", SAY_AGAIN, 0, "")])
