"""Running a data migration, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from moorage.db.data_migrations.contract import DataMigration
from moorage.db.database import Database

_REST = 1.0
"""Between two batches, as a share of what one took: others want the database, too."""


class Stretch:
    """As much of one data migration as is asked for at a time; each batch is a transaction."""

    def __init__(self, database: Database, migration: DataMigration, batch: int) -> None:
        self._database = database
        self._migration = migration
        self._batch = batch
        self.left = self.count()
        """When it began."""
        self.migrated = 0

    def count(self) -> int:
        with self._database.read() as connection:
            return self._migration.left(connection)

    def run(self, most: int) -> Iterator[int]:
        """Rows of each batch; ends when none is left that could be had, or after `most`."""
        while self.migrated < most:
            begun = time.monotonic()
            size = min(self._batch, most - self.migrated)
            rows = self._database.transact(partial(self._migration.migrate, most=size))
            if not rows:
                return
            self.migrated += rows
            yield rows
            time.sleep(_REST * (time.monotonic() - begun))
