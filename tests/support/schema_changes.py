"""What a migration did to a schema that code which knows nothing of it would feel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

Rows = Mapping[str, Any]


@dataclass(frozen=True)
class TableShape:
    columns: Mapping[str, tuple[str, bool, bool]]
    """By name: the type, whether a row may do without a value, and whether it gets one by itself."""
    key: tuple[str, ...]
    demands: frozenset[str]
    """What rows are held against: uniqueness, references, checks."""
    indexes: frozenset[str]


def snapshot(connection: Connection) -> dict[str, TableShape]:
    """Of all tables, by name, as the database tells."""
    inspector = sa.inspect(connection)
    columns = inspector.get_multi_columns()
    keys = inspector.get_multi_pk_constraint()
    uniques = inspector.get_multi_unique_constraints()
    references = inspector.get_multi_foreign_keys()
    checks = inspector.get_multi_check_constraints()
    indexes = inspector.get_multi_indexes()
    return {
        key[1]: TableShape(
            {one["name"]: _column(connection, one) for one in columns[key]},
            tuple(keys[key]["constrained_columns"]),
            frozenset(
                [
                    *(f"unique {one['column_names']}" for one in uniques[key]),
                    *(f"unique {one['column_names']}" for one in indexes[key] if one["unique"]),
                    *(_reference(one) for one in references[key]),
                    *(f"check {one['sqltext']}" for one in checks[key]),
                ]
            ),
            frozenset(str(one["name"]) for one in indexes[key]),
        )
        for key in columns
    }


def _column(connection: Connection, one: Any) -> tuple[str, bool, bool]:
    unknown = isinstance(one["type"], sa.types.NullType)  # to SQLAlchemy, as PostgreSQL's xid8
    kind = "?" if unknown else one["type"].compile(dialect=connection.dialect)
    return str(kind), bool(one["nullable"]), one["default"] is not None


def _reference(one: Any) -> str:
    return f"references {one['constrained_columns']} {one['referred_table']}({one['referred_columns']})"


def objections(before: Mapping[str, TableShape], after: Mapping[str, TableShape]) -> list[str]:
    """Why this is not a migration that only adds; empty if it is one."""
    found = []
    for name, old in before.items():
        new = after.get(name)
        if new is None:
            found.append(f"the table {name} is gone")
            continue
        found += [f"{name}.{problem}" for problem in _of_columns(old, new)]
        found += [f"{name} demands {demand} of its rows" for demand in sorted(new.demands - old.demands)]
        found += [f"the index {index} is gone" for index in sorted(old.indexes - new.indexes)]
        if old.key != new.key:
            found.append(f"{name} has another key")
    return found


def _of_columns(old: TableShape, new: TableShape) -> list[str]:
    found = []
    for name, (kind, optional, given) in old.columns.items():
        if name not in new.columns:
            found.append(f"{name} is gone")
            continue
        new_kind, new_optional, new_given = new.columns[name]
        if new_kind != kind:
            found.append(f"{name} was {kind} and is {new_kind}")
        if optional and not new_optional:
            found.append(f"{name} must have a value")
        if given and not new_given:
            found.append(f"{name} has no default any more")
    for name in new.columns.keys() - old.columns.keys():
        _, optional, given = new.columns[name]
        if not (optional or given):
            found.append(f"{name} is new and must have a value")
    return found
