"""What one process knows of what every boot asks for and hardly ever changes: zones, flavors, quotas.

One small question tells whether it is still true.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from moorage.compute.aggregates.known_aggregates import KnownAggregates
from moorage.compute.flavors import flavors
from moorage.compute.flavors.flavors import Flavor
from moorage.compute.quotas import quotas
from moorage.compute.quotas.limits import QuotaLimits
from moorage.compute.quotas.quotas import Limits
from moorage.db.database import Database
from moorage.scheduler.aggregates import AggregateFacts

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_MOST_KEPT = 10_000


class ReferenceCache:
    def __init__(self, database: Database, aggregates: KnownAggregates, limits: QuotaLimits) -> None:
        self.database = database
        self.aggregates = aggregates
        self.limits = limits
        self.flavors = _Kept[tuple[str, str | None], Flavor](flavors.SUBJECT)
        self.quotas = _Kept[tuple[str, str], tuple[Limits, Limits]](quotas.SUBJECT)

    def now(self) -> ReferenceSnapshot:
        return ReferenceSnapshot(self, self.aggregates.revisions.now())


@dataclass(frozen=True)
class ReferenceSnapshot:
    """What holds at one moment, read only if it has changed since the last time."""

    known: ReferenceCache
    revisions: Mapping[str, int]

    def aggregates(self) -> AggregateFacts:
        return self.known.aggregates.facts_at(self.revisions)

    def flavor(self, flavorid: str, *, visible_to: str | None) -> Flavor:
        def read() -> Flavor:
            with self.known.database.read() as connection:
                return flavors.find(connection, flavorid, visible_to=visible_to)

        return self.known.flavors.get(self.revisions, (flavorid, visible_to), read)

    def limits(self, project_id: str, user_id: str) -> tuple[Limits, Limits]:
        """The project's, and the user's own."""
        limits = self.known.limits
        limits.fetch(project_id)

        def read() -> tuple[Limits, Limits]:
            with self.known.database.read() as connection:
                return limits.in_force(connection, project_id, user_id)

        if not limits.are_ours:
            return read()
        return self.known.quotas.get(self.revisions, (project_id, user_id), read)


class _Kept(Generic[K, V]):
    """Answers that hold until their subject changes; what is not there is not kept."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._answers: tuple[int, dict[K, V]] = (0, {})

    def get(self, revisions: Mapping[str, int], key: K, read: Callable[[], V]) -> V:
        revision = revisions.get(self._subject, 0)
        kept, answers = self._answers
        if kept != revision or len(answers) > _MOST_KEPT:
            answers = {}
            self._answers = (revision, answers)
        try:
            return answers[key]
        except KeyError:
            answer = answers[key] = read()
            return answer
