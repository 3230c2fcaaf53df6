"""Machines that are held for servers, as Ironic's reservations and associations are, held against servers."""

from __future__ import annotations

import msgspec

from moorage.bus.contract import SWEEP, HeldMachine, Task
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing import asking, node_pages, resting
from moorage.conductor.auditing.host_by_host import HostByHostCheck
from moorage.conductor.chores import leftovers
from moorage.db import era


class MachinesCheck(HostByHostCheck):
    name = CheckName.MACHINES
    compares = "machines that are held for servers, and servers"

    def _suspects(self, host: str) -> list[Suspect]:
        held = asking.holdings(self._tools.agents, host).machines
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
            left, is_kept = leftovers.left(connection, [held]), era.current(connection).is_held
        if not left or resting.one(self._tools.database, held.server_uuid) != before:
            return None
        state = "is deleted" if before.is_deleted else f"is on {before.node_uuid or 'no node'}"
        return Drift(
            suspect=suspect,
            sentence=f"a machine is held at {held.node_uuid} for server {held.server_uuid}, which {state}",
            remedy="" if is_kept else "have the host let go of it",
            safe=not is_kept,
            host=host,
            server_uuid=held.server_uuid,
        )

    def repair(self, drift: Drift) -> None:
        """Agents and their drivers look for themselves before they do anything. Several hosts may see a
        machine of a pool; it is let go of by the one that looks after the pool."""
        payload = {"held": [drift.suspect.facts["held"]]}
        keeper = node_pages.host_of(self._tools.database, drift.suspect.facts["held"]["node_uuid"])
        for host in sorted({drift.host, keeper or drift.host}):
            self._tools.cast(host, [Task(0, "", SWEEP, 0, "", payload)])
