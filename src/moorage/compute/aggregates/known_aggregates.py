"""What one process knows of all aggregates, read again only after one of them has changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from moorage.compute.aggregates import aggregates
from moorage.db.database import Database
from moorage.db.revisions import Revisions
from moorage.scheduler.aggregates import AggregateFacts

LOG = logging.getLogger(__name__)


class KnownAggregates:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.revisions = Revisions(database)
        self._kept: tuple[int, AggregateFacts] = (0, AggregateFacts())

    def facts(self) -> AggregateFacts:
        """As of now; costs one small question as long as nothing has changed."""
        return self.facts_at(self.revisions.now())

    def facts_at(self, now: Mapping[str, int]) -> AggregateFacts:
        """For who has asked for the revisions already."""
        revision = now.get(aggregates.SUBJECT, 0)
        kept, facts = self._kept
        if revision != kept:
            with self._database.read() as connection:
                facts = AggregateFacts.of(aggregates.listed(connection))
            self._kept = (revision, facts)
            for problem in facts.problems:
                LOG.warning("%s; it is left out", problem)
        return facts
