"""Inserting thousands of rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

_WORTH_A_COPY = 50


def insert(
    connection: Connection, table: sa.Table, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert `rows`, each with a value for each of `columns`; PostgreSQL takes many of them by COPY."""
    if not rows:
        return
    if connection.dialect.name != "postgresql" or len(rows) < _WORTH_A_COPY:
        connection.execute(sa.insert(table), [dict(zip(columns, row, strict=True)) for row in rows])
        return
    driver: Any = connection.connection.driver_connection
    with (
        driver.cursor() as cursor,
        cursor.copy(f"COPY {table.name} ({', '.join(columns)}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)
