"""What hosts know of the database, held against the database: it may have gone back."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.compute.hosts import ahead
from moorage.compute.hosts.ahead import AheadHost
from moorage.conductor.auditing.contract import AuditCheck, Portion


class EraCheck(AuditCheck):
    name = CheckName.ERA
    compares = "what hosts have heard of, and what the database knows"

    def look(self) -> Iterator[Portion]:
        yield Portion([Suspect(found.host) for found in self._found()], 1, 1)

    def judge(self, suspect: Suspect) -> Drift | None:
        for found in self._found():
            if found.host == suspect.subject:
                return Drift(suspect=suspect, sentence=str(found), host=found.host)
        return None

    def repair(self, drift: Drift) -> None:
        """There is none: only an operator knows whether the database was restored."""

    def _found(self) -> list[AheadHost]:
        with self._tools.database.read() as connection:
            return ahead.find(connection)
