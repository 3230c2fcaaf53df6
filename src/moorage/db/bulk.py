"""Writing many rows in one statement.

PostgreSQL takes them as one array a column, and very many by COPY; SQLite has no round trip to save, so there
they go one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection

from moorage.db import copy

Rows = Sequence[tuple[Any, ...]]

_VERY_MANY = 500
"""From here on what COPY spares is worth its own round trip."""


def insert(connection: Connection, table: sa.Table, columns: tuple[str, ...], rows: Rows) -> None:
    """Insert `rows`, each with a value for each of `columns`."""
    if not rows:
        return
    if connection.dialect.name != "postgresql":
        connection.execute(sa.insert(table), [dict(zip(columns, row, strict=True)) for row in rows])
    elif len(rows) < _VERY_MANY:
        connection.execute(_insert_arrays(table, columns), _arrays(columns, rows))
    else:
        copy.into(connection, table, columns, rows)


def numbers(connection: Connection, table: sa.Table, count: int) -> list[int]:
    """As many ids that no row of `table` has or had, for who needs them before the rows are there."""
    if connection.dialect.name == "postgresql":
        sequence = sa.func.pg_get_serial_sequence(table.name, "id")
        drawn = sa.select(sa.func.nextval(sequence)).select_from(sa.func.generate_series(1, count))
        return list(connection.execute(drawn).scalars())
    drawing = {"name": table.name, "count": count}
    last = connection.execute(_DRAW, drawing).scalar_one_or_none()
    if last is None:
        last = connection.execute(_DRAW_FIRST, drawing).scalar_one()
    return list(range(last + 1 - count, last + 1))


def last_number(connection: Connection, table: sa.Table) -> int:
    """The highest id that was ever given out; 0 if none was."""
    if connection.dialect.name == "postgresql":
        found = connection.execute(_LAST, {"table": table.name}).scalar_one_or_none()
    else:
        found = connection.execute(_LAST_ON_SQLITE, {"table": table.name}).scalar_one_or_none()
    return int(found or 0)


_LAST = sa.text("SELECT pg_sequence_last_value(pg_get_serial_sequence(quote_ident(:table), 'id')::regclass)")
_LAST_ON_SQLITE = sa.text("SELECT seq FROM sqlite_sequence WHERE name = :table")


def skip_numbers(connection: Connection, count: int) -> None:
    """Leave out so many ids of each table that numbers its rows: somebody may remember other rows by them."""
    if connection.dialect.name == "postgresql":
        connection.execute(_SKIP, {"count": count})
        return
    tables = connection.execute(_NUMBERED).scalars().all()
    for name in tables:
        drawing = {"name": name, "count": count}
        if connection.execute(_DRAW, drawing).first() is None:
            connection.execute(_DRAW_FIRST, drawing)


_SKIP = sa.text(
    "SELECT setval(format('%I.%I', schemaname, sequencename)::regclass, coalesce(last_value, 0) + :count) "
    "FROM pg_sequences WHERE schemaname = current_schema()"
)
_NUMBERED = sa.text("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%AUTOINCREMENT%'")
_DRAW = sa.text("UPDATE sqlite_sequence SET seq = seq + :count WHERE name = :name RETURNING seq")
"""SQLite's memory of the highest id that a table with AUTOINCREMENT ever had."""
_DRAW_FIRST = sa.text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :count) RETURNING seq")
"""For a table that never had a row."""


def insert_numbered(
    connection: Connection, table: sa.Table, columns: tuple[str, ...], rows: Rows
) -> dict[Any, int]:
    """As `insert`, for a table that numbers its rows: the new ids by the value of the first column."""
    if not rows:
        return {}
    answered = (table.c[columns[0]], table.c.id)
    if connection.dialect.name == "postgresql":
        made = connection.execute(_insert_arrays(table, columns).returning(*answered), _arrays(columns, rows))
    else:
        values = [dict(zip(columns, row, strict=True)) for row in rows]
        made = connection.execute(sa.insert(table).returning(*answered), values)
    return dict(made.all())


def add(
    connection: Connection, table: sa.Table, keys: tuple[str, ...], counter: str, rows: Rows, **also: Any
) -> None:
    """Add the last value of each row to `counter` where the key columns have its first values.

    `also` sets other columns of the same rows.
    """
    if not rows:
        return
    columns = (*keys, "delta")
    if connection.dialect.name == "postgresql":
        connection.execute(_add_arrays(table, keys, counter, tuple(also)), {**_arrays(columns, rows), **also})
    else:
        bound = [{f"at_{name}": value for name, value in zip(columns, row, strict=True)} for row in rows]
        connection.execute(_add_one(table, keys, counter, tuple(also)), [{**row, **also} for row in bound])


def _arrays(columns: tuple[str, ...], rows: Rows) -> dict[str, list[Any]]:
    return {f"at_{name}": list(values) for name, values in zip(columns, zip(*rows, strict=True), strict=True)}


def _unnested(types: Mapping[str, Any]) -> sa.TableValuedAlias:
    arrays = [
        sa.bindparam(f"at_{name}", type_=postgresql.ARRAY(column_type)) for name, column_type in types.items()
    ]
    listed = [sa.column(name, column_type) for name, column_type in types.items()]
    return sa.func.unnest(*arrays).table_valued(*listed).render_derived("given")


@lru_cache(maxsize=64)
def _insert_arrays(table: sa.Table, columns: tuple[str, ...]) -> sa.Insert:
    given = _unnested({name: table.c[name].type for name in columns})
    return sa.insert(table).from_select(
        list(columns), sa.select(*(given.c[name] for name in columns)), include_defaults=False
    )


@lru_cache(maxsize=64)
def _add_arrays(table: sa.Table, keys: tuple[str, ...], counter: str, also: tuple[str, ...]) -> sa.Update:
    given = _unnested({**{name: table.c[name].type for name in keys}, "delta": sa.BigInteger()})
    return (
        sa.update(table)
        .where(*(table.c[name] == given.c[name] for name in keys))
        .values({counter: table.c[counter] + given.c.delta, **{name: sa.bindparam(name) for name in also}})
    )


@lru_cache(maxsize=64)
def _add_one(table: sa.Table, keys: tuple[str, ...], counter: str, also: tuple[str, ...]) -> sa.Update:
    return (
        sa.update(table)
        .where(*(table.c[name] == sa.bindparam(f"at_{name}") for name in keys))
        .values({counter: table.c[counter] + sa.bindparam("at_delta"), **{n: sa.bindparam(n) for n in also}})
    )
