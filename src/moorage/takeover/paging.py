"""Rows of a large table a page at a time, by their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def pages(
    connection: Connection, query: sa.Select[Any], number: sa.ColumnElement[Any], size: int
) -> Iterator[Sequence[Any]]:
    """What `query` finds, which has `number` as its column `id`: none of the pages is empty."""
    last = 0
    while rows := connection.execute(query.where(number > last).order_by(number).limit(size)).all():
        yield rows
        last = rows[-1].id
