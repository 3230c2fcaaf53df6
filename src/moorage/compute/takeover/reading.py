"""Reading of a foreign table: rows by what they belong to, and moments as what they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

_MOST_OWNERS = 1_000
"""No database takes any number of parameters."""
_LONG_AGO = datetime(2010, 1, 1)
"""Before there was a Nova."""


def utc(moment: datetime | None) -> datetime:
    """Nova writes moments without their zone, which is UTC; rows that were made by hand may have none."""
    return (moment or _LONG_AGO).replace(tzinfo=UTC)


def utc_or_none(moment: datetime | None) -> datetime | None:
    return None if moment is None else utc(moment)


def rows(connection: Connection, table: sa.TableClause, *order: str) -> Sequence[Row[Any]]:
    return connection.execute(sa.select(table).order_by(*(table.c[name] for name in order))).all()


def rows_of(
    connection: Connection, table: sa.TableClause, key: str, owners: Sequence[Any], *conditions: Any
) -> Sequence[Row[Any]]:
    """Those that belong to one of the owners; the oldest of each first, where they are numbered."""
    found: list[Row[Any]] = []
    for start in range(0, len(owners), _MOST_OWNERS):
        some = owners[start : start + _MOST_OWNERS]
        query = sa.select(table).where(table.c[key].in_(some), *conditions)
        found += connection.execute(query.order_by(table.c.id) if "id" in table.c else query)
    return found


def by_owner(found: Iterable[Row[Any]], key: str) -> dict[Any, list[Row[Any]]]:
    grouped: dict[Any, list[Row[Any]]] = defaultdict(list)
    for row in found:
        grouped[row._mapping[key]].append(row)
    return grouped


def pairs(found: Iterable[Row[Any]]) -> dict[str, str]:
    """Of a table of keys and values."""
    return {row.key: row.value or "" for row in found}


def fields_of(row: Row[Any], *names: str) -> Mapping[str, Any]:
    """Those columns whose record has the same name for them."""
    return {name: row._mapping[name] for name in names}
