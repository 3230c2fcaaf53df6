"""What a data migration is."""

from __future__ import annotations

from typing import Protocol

from sqlalchemy.engine import Connection


class DataMigration(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def needs_schema(self) -> str:
        """The first revision that has a place for the newer form."""

    def left(self, connection: Connection) -> int:
        """Rows that are still in the old form."""

    def migrate(self, connection: Connection, most: int) -> int:
        """Bring up to `most` rows into the newer form, in the caller's transaction; how many these were.

        Rows that somebody else holds are left for later: nobody waits for us, and we wait for nobody."""
