"""`column IN (many values)`, as one parameter: no limit on their number, and one cached statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection, Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


def among(
    connection: Connection, column: sa.ColumnElement[Any], values: Iterable[Any]
) -> sa.ColumnElement[bool]:
    if connection.dialect.name == "postgresql":
        array = sa.bindparam(None, list(values), type_=postgresql.ARRAY(column.type), unique=True)
        return column == sa.any_(array)
    listed = sa.func.json_each(msgspec.json.encode(list(values)).decode()).table_valued("value")
    return column.in_(sa.select(listed.c.value))


def one_of(column: sa.Column[Any], name: str) -> sa.ColumnElement[bool]:
    """The same for a statement that is made once: the values are given as the parameter `name`, a list."""
    return column.bool_op("", precedence=_COMPARISON)(_Given(sa.bindparam(name, type_=_Listed(column.type))))


_COMPARISON = 5
"""As `=` and `IN` have it."""


class _Given(FunctionElement[Any]):
    """The right side, together with its operator, which is another one in each database."""

    name = "given"
    inherit_cache = True


@compiles(_Given, "postgresql")
def _postgresql(element: _Given, compiler: SQLCompiler, **kw: Any) -> str:
    (values,) = element.clauses
    return f"= ANY ({compiler.process(values, **kw)})"


@compiles(_Given, "sqlite")
def _sqlite(element: _Given, compiler: SQLCompiler, **kw: Any) -> str:
    (values,) = element.clauses
    return f"IN (SELECT value FROM json_each({compiler.process(values, **kw)}))"


class _Listed(sa.types.TypeDecorator[list[Any]]):
    """A list of values of another type, in what way a database takes one."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, item: sa.types.TypeEngine[Any]) -> None:
        super().__init__()
        self._item = item

    def load_dialect_impl(self, dialect: Dialect) -> sa.types.TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.ARRAY(self._item))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        listed = list(value)
        return listed if dialect.name == "postgresql" else msgspec.json.encode(listed).decode()
