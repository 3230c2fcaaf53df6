"""What one process knows of all aggregates, read again only after one of them has changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sqlalchemy.engine import Connection

from moorage.compute import aggregates
from moorage.db import revisions
from moorage.db.database import Database
from moorage.scheduler.aggregates import AggregateFacts

LOG = logging.getLogger(__name__)


class KnownAggregates:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._kept: tuple[int, AggregateFacts] = (0, AggregateFacts())

    def facts(self) -> AggregateFacts:
        with self._database.read() as connection:
            return self.facts_in(connection)

    def facts_in(self, connection: Connection) -> AggregateFacts:
        """As of now; costs one small query as long as nothing has changed."""
        return self.facts_at(connection, revisions.now(connection))

    def facts_at(self, connection: Connection, now: Mapping[str, int]) -> AggregateFacts:
        """For who has asked for the revisions already."""
        revision = now.get(aggregates.SUBJECT, 0)
        kept, facts = self._kept
        if revision != kept:
            facts = AggregateFacts.of(aggregates.listed(connection))
            self._kept = (revision, facts)
            for problem in facts.problems:
                LOG.warning("%s; it is left out", problem)
        return facts
