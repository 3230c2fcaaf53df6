"""Nodes, held against the providers that stand for them in Placement."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.bus.contract import SAY_AGAIN, Task
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing import node_pages
from moorage.conductor.auditing.contract import AuditCheck, Portion


class ProvidersCheck(AuditCheck):
    name = CheckName.PROVIDERS
    compares = "nodes of hosts, and their providers in Placement"

    def look(self) -> Iterator[Portion]:
        for page in node_pages.pages(self._tools.database):
            there = self._tools.placement.aggregates([node.uuid for node in page.nodes])
            odd = [Suspect(node.uuid) for node in page.nodes if node.uuid not in there]
            yield Portion(odd, page.done, page.total)

    def judge(self, suspect: Suspect) -> Drift | None:
        host = node_pages.host_of(self._tools.database, suspect.subject)
        if host is None or self._tools.placement.aggregates([suspect.subject]):
            return None
        is_up = host in self._tools.hosts.up()
        return Drift(
            suspect=suspect,
            sentence=f"node {suspect.subject} of host {host} has no provider in Placement",
            remedy="have the host report it anew" if is_up else "",
            safe=is_up,
            fingerprint=host,
            host=host,
        )

    def repair(self, drift: Drift) -> None:
        """The host says again what it says after every start; late or twice is the same."""
        self._tools.cast(drift.host, [Task(0, "", SAY_AGAIN, 0, "")])
