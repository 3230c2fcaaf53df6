"""Machines that are held for servers, as Ironic's reservations and associations are, held against servers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from moorage.bus.contract import SWEEP, HeldMachine, Task
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing import asking, resting
from moorage.conductor.auditing.contract import AuditCheck, CheckFailedError, Portion
from moorage.conductor.chores import leftovers


class MachinesCheck(AuditCheck):
    name = CheckName.MACHINES
    compares = "machines that are held for servers, and servers"

    def look(self) -> Iterator[Portion]:
        hosts = sorted(self._tools.hosts.up())
        for done, host in enumerate(hosts, 1):
            yield Portion(self._suspects(host), done, len(hosts))

    def _suspects(self, host: str) -> list[Suspect]:
        try:
            held = asking.holdings(self._tools.agents, host).machines
        except CheckFailedError:
            return []
        with self._tools.database.read() as connection:
            left = leftovers.left(connection, held)
        return [
            Suspect(f"{one.server_uuid} {one.node_uuid}", {"host": host, "held": msgspec.to_builtins(one)})
            for one in left
        ]

    def judge(self, suspect: Suspect) -> Drift | None:
        host, held = suspect.facts["host"], msgspec.convert(suspect.facts["held"], HeldMachine)
        before = resting.one(self._tools.database, held.server_uuid)
        if before is None or host not in self._tools.hosts.up():
            return None
        if held not in asking.holdings(self._tools.agents, host, [held.server_uuid]).machines:
            return None
        with self._tools.database.read() as connection:
            left = leftovers.left(connection, [held])
        if not left or resting.one(self._tools.database, held.server_uuid) != before:
            return None
        state = "is deleted" if before.is_deleted else f"is on {before.node_uuid or 'no node'}"
        return Drift(
            suspect=suspect,
            sentence=f"a machine is held at {held.node_uuid} for server {held.server_uuid}, which {state}",
            remedy="have the host let go of it",
            safe=True,
            host=host,
            server_uuid=held.server_uuid,
        )

    def repair(self, drift: Drift) -> None:
        """The agent and its driver look for themselves before they do anything."""
        payload = {"held": [drift.suspect.facts["held"]]}
        self._tools.cast(drift.host, [Task(0, "", SWEEP, 0, "", payload)])
