"""Numbers that grow with every change of a subject, so that readers may keep what they have read."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.database import Database
from moorage.db.probe import Probe
from moorage.db.tables.revisions import revisions
from moorage.db.upsert import upsert

_NOW = "SELECT subject, revision FROM revisions"


class Revisions:
    """What the numbers are, for any number of threads."""

    def __init__(self, database: Database) -> None:
        self._probe = Probe(database.engine, postgresql=_NOW, sqlite=_NOW)

    def now(self) -> Mapping[str, int]:
        """By subject; one that never changed has none.

        Ask before reading what is to be kept: a change in between is then seen the next time, not missed.
        """
        return {subject: int(revision) for subject, revision in self._probe.rows()}


def leap(connection: Connection, least: int) -> None:
    """After a restore: no number is one that a reader remembers from before."""
    grown = sa.case((revisions.c.revision < least, least), else_=revisions.c.revision + 1)
    connection.execute(sa.update(revisions).values(revision=grown))


def grow(connection: Connection, subject: str) -> None:
    """What is written in this transaction changes `subject`."""
    grown = {"revision": revisions.c.revision + 1}
    first = upsert(connection, revisions, ["subject"], computed=grown).values(subject=subject, revision=1)
    connection.execute(first)
