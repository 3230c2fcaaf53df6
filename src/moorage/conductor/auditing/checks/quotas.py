"""What projects count as used of their quotas, held against their servers."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.audits.audit import CheckName
from moorage.compute.audits.findings import Drift, Suspect
from moorage.compute.quotas import usage
from moorage.conductor.auditing.contract import AuditCheck, Portion
from moorage.db.tables.compute import quota_usage

_PAGE = 200


class QuotasCheck(AuditCheck):
    name = CheckName.QUOTAS
    compares = "what projects count as used of their quotas, and their servers"

    def look(self) -> Iterator[Portion]:
        last, done = "", 0
        with self._tools.database.read() as connection:
            total = connection.execute(sa.select(sa.func.count()).select_from(quota_usage)).scalar_one()
        while True:
            query = sa.select(quota_usage.c.project_id).where(quota_usage.c.project_id > last)
            with self._tools.database.snapshot() as connection:
                page = (
                    connection.execute(query.order_by(quota_usage.c.project_id).limit(_PAGE)).scalars().all()
                )
                odd = [Suspect(one) for one in page if _differs(connection, one)]
            if not page:
                return
            last, done = page[-1], done + len(page)
            yield Portion(odd, done, max(done, total))

    def judge(self, suspect: Suspect) -> Drift | None:
        """Under the lock that everybody takes who changes either side."""

        def look(connection: Connection) -> tuple[dict[str, int], dict[str, int]]:
            counted = usage.lock(connection, suspect.subject)
            return counted, usage.recounted(connection, suspect.subject)

        counted, real = self._tools.database.transact(look)
        if counted == real:
            return None
        differing = [name for name in usage.COUNTED if counted[name] != real[name]]
        said = ", ".join(f"{counted[name]} {name} instead of {real[name]}" for name in differing)
        return Drift(
            suspect=suspect,
            sentence=f"project {suspect.subject} counts {said}",
            remedy="count again",
            safe=True,
            fingerprint=" ".join(str(counted[name] - real[name]) for name in usage.COUNTED),
        )

    def repair(self, drift: Drift) -> None:
        """Counted again under the lock, so late or twice is the same."""
        project_id = drift.suspect.subject

        def count(connection: Connection) -> None:
            counted, real = usage.lock(connection, project_id), usage.recounted(connection, project_id)
            usage.add(connection, project_id, {name: real[name] - counted[name] for name in usage.COUNTED})

        self._tools.database.transact(count)


def _differs(connection: Connection, project_id: str) -> bool:
    return usage.of_project(connection, project_id) != usage.recounted(connection, project_id)
