"""The counters that claims are checked against, held against the allocations that they stand for."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.placement.client.contract import Miscount


class CountersCheck(AuditCheck):
    name = CheckName.COUNTERS
    compares = "what providers count as used, and the allocations of them"

    def look(self) -> Iterator[Portion]:
        """One statement of the database that has both; nothing if this Placement has no such counters."""
        found = self._tools.placement.miscounts()
        yield Portion([_suspect(one) for one in found], 1, 1)

    def judge(self, suspect: Suspect) -> Drift | None:
        provider, resource_class = suspect.facts["provider"], suspect.facts["resource_class"]
        for one in self._tools.placement.miscounts(provider):
            if one.resource_class == resource_class:
                return Drift(
                    suspect=suspect,
                    sentence=f"provider {provider} counts {one.counted} {resource_class} as used: "
                    f"its allocations are {one.allocated}",
                    remedy="count again",
                    safe=True,
                    fingerprint=str(one.counted - one.allocated),
                )
        return None

    def repair(self, drift: Drift) -> None:
        """Counted again under the provider's lock, so late or twice is the same."""
        self._tools.placement.recount(drift.suspect.facts["provider"])


def _suspect(one: Miscount) -> Suspect:
    return Suspect(
        f"{one.provider_uuid} {one.resource_class}",
        {"provider": one.provider_uuid, "resource_class": one.resource_class},
    )
