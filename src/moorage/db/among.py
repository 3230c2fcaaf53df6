"""`column IN (many values)`, as one parameter: no limit on their number, and one cached statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection


def among(connection: Connection, column: sa.Column[Any], values: Iterable[Any]) -> sa.ColumnElement[bool]:
    if connection.dialect.name == "postgresql":
        array = sa.bindparam(None, list(values), type_=postgresql.ARRAY(column.type), unique=True)
        return column == sa.any_(array)
    listed = sa.func.json_each(msgspec.json.encode(list(values)).decode()).table_valued("value")
    return column.in_(sa.select(listed.c.value))
