"""A check that asks each host that is up; one that does not answer is asked again by the next audit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator

from moorage.compute.audits.findings import Suspect
from moorage.conductor.auditing.contract import AuditCheck, CheckFailedError, Portion


class HostByHostCheck(AuditCheck):
    def look(self) -> Iterator[Portion]:
        hosts = sorted(self._tools.hosts.up())
        for done, host in enumerate(hosts, 1):
            yield Portion(self._answered(host), done, len(hosts))

    def _answered(self, host: str) -> list[Suspect]:
        """Its heartbeats say whether a host lives that does not answer."""
        try:
            return self._suspects(host)
        except CheckFailedError:
            return []

    @abstractmethod
    def _suspects(self, host: str) -> list[Suspect]:
        """CheckFailedError if the host does not answer."""
