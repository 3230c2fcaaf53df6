"""The numbers of rows: they stay what they were, since scripts know them, unless two cells have the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.takeover import nova_tables as nova
from moorage.db.tables.compute import nodes, servers, services
from moorage.db.tables.moves import migrations

_NUMBERED = (
    (servers, nova.instances),
    (services, nova.services),
    (nodes, nova.compute_nodes),
    (migrations, nova.migrations),
)
"""What each cell numbers by itself, with Nova's name for it."""


class Numbers(Protocol):
    def of(self, table: sa.Table, uuid: str, number: int) -> int:
        """What row `number` of a cell becomes."""


class NewNumbers:
    """For rows that are not there yet: who comes first keeps its own."""

    def __init__(self, connection: Connection, cells: Iterable[Connection]) -> None:
        highest = [(theirs, [_highest(cell, theirs) for cell in cells]) for _, theirs in _NUMBERED]
        self._taken: dict[str, set[int]] = {}
        self._next: dict[str, int] = {}
        for (ours, _), (_, found) in zip(_NUMBERED, highest, strict=True):
            self._taken[ours.name] = set(connection.execute(sa.select(ours.c.id)).scalars())
            self._next[ours.name] = max([*found, *self._taken[ours.name]], default=0) + 1

    def of(self, table: sa.Table, uuid: str, number: int) -> int:
        if number in self._taken[table.name]:
            number = self._next[table.name]
            self._next[table.name] += 1
        self._taken[table.name].add(number)
        return number


class KnownNumbers:
    """Of rows that are there; 0 if one is not."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, dict[str, int]] = {}

    def of(self, table: sa.Table, uuid: str, number: int) -> int:
        if table.name not in self._known:
            found = self._connection.execute(sa.select(table.c.uuid, table.c.id))
            self._known[table.name] = {row.uuid: row.id for row in found}
        return self._known[table.name].get(uuid, 0)


def go_on_after(connection: Connection, tables: Iterable[sa.Table]) -> None:
    """What is made later gets higher ones: PostgreSQL counts only those that it gave out itself."""
    if connection.dialect.name != "postgresql":
        return
    for table in tables:
        highest = connection.execute(sa.select(sa.func.max(table.c.id))).scalar_one()
        if highest is not None:
            sequence = sa.func.pg_get_serial_sequence(table.name, "id")
            connection.execute(sa.select(sa.func.setval(sequence, highest)))


def _highest(cell: Connection, table: sa.TableClause) -> int:
    return int(cell.execute(sa.select(sa.func.max(table.c.id))).scalar_one() or 0)
