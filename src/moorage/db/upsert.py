"""INSERT of rows that may be there already: both databases can, and SQLAlchemy has it for each by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection

Insert = postgresql.Insert | sqlite.Insert


def insert_if_absent(connection: Connection, table: sa.Table, key: Sequence[str] | None = None) -> Insert:
    """Leaves out rows whose `key` is taken; without one, rows that collide with any other."""
    return _insert(connection, table).on_conflict_do_nothing(index_elements=key)


def upsert(
    connection: Connection,
    table: sa.Table,
    key: Sequence[str],
    renewed: Sequence[str] = (),
    computed: Mapping[str, sa.ColumnElement[Any]] | None = None,
    *,
    only_if: sa.ColumnElement[bool] | None = None,
) -> Insert:
    """A row whose `key` is taken takes over what is `renewed` from the new one, and what is `computed`.

    `only_if` is a condition on the row that is there; where it fails, that one stays as it is.
    """
    statement = _insert(connection, table)
    changes = {name: statement.excluded[name] for name in renewed}
    return statement.on_conflict_do_update(
        index_elements=key, set_={**changes, **(computed or {})}, where=only_if
    )


def _insert(connection: Connection, table: sa.Table) -> Insert:
    is_postgresql = connection.dialect.name == "postgresql"
    return postgresql.insert(table) if is_postgresql else sqlite.insert(table)
