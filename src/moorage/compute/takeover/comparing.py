"""Looking at both sides once more, when all is written or at any later time: what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.takeover import imported_rows
from moorage.compute.takeover.imported_rows import WHOLE, ImportedRows
from moorage.compute.takeover.nova_source import NovaSource
from moorage.compute.takeover.numbers import KnownNumbers
from moorage.compute.takeover.survey import Survey
from moorage.db.among import among
from moorage.db.tables.compute import servers
from moorage.takeover.progress import Progress

_NAMING = ("uuid", "flavorid", "name", "server_id", "project_id", "user_id", "resource", "host", "request_id")
"""Columns by which a row is told of."""
_IDENTITY = ("uuid", "flavorid", "request_id")
"""Those by which it is the same row on both sides, whatever else has become of it; else all that name it."""


class RowDifference(msgspec.Struct, frozen=True):
    table: str
    row: str
    """What is left of its own words to know it by."""
    missing: bool
    """It should be here; else it should not."""
    columns: list[str] = []
    """In which it is not what the other side calls by the same words; none if that has no such row. Names
    only: there are secrets among the values."""


class RowComparison(msgspec.Struct):
    compared: Counter[str] = msgspec.field(default_factory=Counter)
    """Rows that should be here, by table."""
    differences: list[RowDifference] = []

    @property
    def is_equal(self) -> bool:
        return not self.differences


def compare(connection: Connection, source: NovaSource, survey: Survey, progress: Progress) -> RowComparison:
    """Each column of what is here with what comes from there."""
    found = RowComparison()
    numbers = KnownNumbers(connection)
    for some in imported_rows.of_cloud(survey, numbers):
        _add(found, connection, some)
    done = 0
    for batch in imported_rows.of_servers(source, survey, numbers):
        for some in batch:
            _add(found, connection, some)
        done += sum(len(some.rows) for some in batch if some.table is servers)
        progress("comparison", done, survey.counts["servers"])
    return found


def _add(found: RowComparison, connection: Connection, some: ImportedRows) -> None:
    found.compared[str(some.table.name)] += len(some.rows)
    found.differences += _differing(connection, some)


def _differing(connection: Connection, some: ImportedRows) -> Iterator[RowDifference]:
    wanted = Counter(map(_encoded, some.rows))
    columns = sorted({name for row in some.rows for name in row})
    present = Counter(_encoded(row) for row in _present(connection, some, columns))
    missing = [_Told.of(row) for row in (wanted - present).elements()]
    strange = [_Told.of(row) for row in (present - wanted).elements()]
    yield from _told(some, missing, strange, missing=True)
    yield from _told(some, strange, missing, missing=False)


def _present(connection: Connection, some: ImportedRows, columns: list[str]) -> Iterator[dict[str, Any]]:
    table = some.table
    chosen = [table.c[name] for name in columns] or [*table.primary_key.columns]
    query = sa.select(*chosen)
    if some.scope != WHOLE:
        values = sorted({row[some.scope] for row in some.rows})
        if not values:
            return
        query = query.where(among(connection, table.c[some.scope], values))
    for row in connection.execute(query):
        yield dict(row._mapping)


def _encoded(row: dict[str, Any]) -> bytes:
    return msgspec.json.encode(row, order="deterministic")


class _Told(msgspec.Struct, frozen=True):
    """A row that only one side has."""

    name: str
    identity: str
    row: dict[str, Any]

    @classmethod
    def of(cls, encoded: bytes) -> _Told:
        row = msgspec.json.decode(encoded)
        name = ", ".join(f"{column} {row[column]}" for column in _NAMING if row.get(column))
        return cls(name, next((str(row[column]) for column in _IDENTITY if row.get(column)), name), row)


def _told(
    some: ImportedRows, rows: list[_Told], others: list[_Told], *, missing: bool
) -> Iterator[RowDifference]:
    counts = Counter(told.identity for told in rows) + Counter(other.identity for other in others)
    same = {other.identity: other.row for other in others if counts[other.identity] == 2}
    for told in rows:
        other = same.get(told.identity, told.row)
        columns = [name for name in told.row if told.row[name] != other[name]]
        yield RowDifference(str(some.table.name), told.name, missing, columns)
