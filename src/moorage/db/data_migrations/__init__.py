"""Rows that are brought into a newer form while everything runs, a few at a time.

One a file, listed here. Each knows by looking how many rows are left, so it can be cut off at any moment and
run again, and rows that an older release writes in the meantime are found, too. A migration of the schema
that takes the old form away names those that it `needs`.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy.engine import Connection

from moorage.db.data_migrations.contract import DataMigration

__all__ = ["ALL", "DataMigration", "incomplete"]

ALL: Sequence[DataMigration] = ()


def incomplete(
    connection: Connection, names: Sequence[str], known: Sequence[DataMigration] = ALL
) -> list[str]:
    """Those of `names` that have rows left."""
    by_name = {one.name: one for one in known}
    return [name for name in names if by_name[name].left(connection)]
