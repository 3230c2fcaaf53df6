"""Texts in one order on both databases, whatever a PostgreSQL's collation is: that of their characters."""

from __future__ import annotations

from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

T = TypeVar("T")


def by_character(column: sa.ColumnElement[T]) -> sa.ColumnElement[T]:
    """`column` to sort by, or to compare with what was sorted so."""
    return _ByCharacter(column) if isinstance(column.type, sa.String) else column


class _ByCharacter(FunctionElement[Any]):
    name = "by_character"
    inherit_cache = True
    type = sa.String()


@compiles(_ByCharacter, "postgresql")
def _postgresql(element: _ByCharacter, compiler: SQLCompiler, **kw: Any) -> str:
    (column,) = element.clauses
    return f'({compiler.process(column, **kw)} COLLATE "C")'


@compiles(_ByCharacter, "sqlite")
def _sqlite(element: _ByCharacter, compiler: SQLCompiler, **kw: Any) -> str:
    """Its only order."""
    (column,) = element.clauses
    return compiler.process(column, **kw)
