"""Aggregates of hosts, held against their mirror in Placement."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.compute.aggregates import membership, outbox
from moorage.compute.aggregates.mirror import Mirror, Settled
from moorage.compute.aggregates.reconciliation import Reconciliation
from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.conductor.auditing.contract import AuditCheck, Portion


class AggregatesCheck(AuditCheck):
    name = CheckName.AGGREGATES
    compares = "aggregates of hosts, and those of their providers in Placement"

    def look(self) -> Iterator[Portion]:
        found = Reconciliation(self._tools.database, self._tools.placement).run(dry=True)
        yield Portion([Suspect(change.provider, {"host": change.host}) for change in found.changes], 1, 1)

    def judge(self, suspect: Suspect) -> Drift | None:
        """First what Placement has, then what it should: what was changed in between is in the outbox."""
        uuid, host = suspect.subject, suspect.facts["host"]
        told = self._tools.placement.aggregates([uuid]).get(uuid)
        if told is None:
            return None
        with self._tools.database.snapshot() as connection:
            wanted = membership.wanted(connection, [uuid])
            if outbox.due_among(connection, [uuid, *wanted.deleted]):
                return None
        should = wanted.target(uuid, told.aggregates)
        if should == told.aggregates:
            return None
        lacks, has = sorted(should - told.aggregates), sorted(told.aggregates - should)
        said = [f"is not in {', '.join(lacks)}"] if lacks else []
        said += [f"is in {', '.join(has)}"] if has else []
        return Drift(
            suspect=suspect,
            sentence=f"provider {uuid}{f' of host {host}' if host else ''} {' and '.join(said)}",
            remedy="put that right",
            safe=True,
            fingerprint=f"{' '.join(lacks)} - {' '.join(has)}"[:255],
            host=host,
        )

    def repair(self, drift: Drift) -> None:
        """By the provider's generation: late, it is refused."""
        mirror = Mirror(self._tools.database, self._tools.placement)
        mirror.settle([drift.suspect.subject], Settled())
