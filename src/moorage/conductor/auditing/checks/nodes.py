"""Nodes, held against what the drivers of their hosts have.

Not those that several hosts could own: what their owners have is compared with each heartbeat.
"""

from __future__ import annotations

import sqlalchemy as sa

from moorage.bus.contract import SAY_AGAIN, Task
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing import asking, node_pages
from moorage.conductor.auditing.host_by_host import HostByHostCheck
from moorage.db.tables.compute import nodes


class NodesCheck(HostByHostCheck):
    name = CheckName.NODES
    compares = "nodes of hosts, and what their drivers have"

    def _suspects(self, host: str) -> list[Suspect]:
        there = asking.nodes(self._tools.agents, host)
        if there is None:
            return []
        query = sa.select(nodes.c.uuid).where(nodes.c.host == host, node_pages.EXISTS)
        with self._tools.database.read() as connection:
            known = set(connection.execute(query).scalars())
        return [Suspect(f"{uuid} {host}", {"node": uuid, "host": host}) for uuid in sorted(there ^ known)]

    def judge(self, suspect: Suspect) -> Drift | None:
        """What a host has just got or lost, its next heartbeat tells; by the second look it has."""
        uuid, host = suspect.facts["node"], suspect.facts["host"]
        before = node_pages.host_of(self._tools.database, uuid)
        if host not in self._tools.hosts.up():
            return None
        there = asking.nodes(self._tools.agents, host)
        if there is None or (uuid in there) == (before == host):
            return None
        if node_pages.host_of(self._tools.database, uuid) != before:
            return None
        if uuid in there:
            sentence = (
                f"host {host} has node {uuid}, which {f'is of host {before}' if before else 'nobody knows'}"
            )
        else:
            sentence = f"host {host} does not have node {uuid}, which counts among its nodes"
        return Drift(
            suspect=suspect,
            sentence=sentence,
            remedy="have the host report its nodes anew",
            safe=True,
            fingerprint=before or "",
            host=host,
        )

    def repair(self, drift: Drift) -> None:
        """The host says again what it says after every start; late or twice is the same."""
        self._tools.cast(drift.host, [Task(0, "", SAY_AGAIN, 0, "")])
