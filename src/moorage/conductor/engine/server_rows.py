"""Servers as operations see them: their rows, as they are now."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.among import one_of
from moorage.db.tables.compute import servers

_ROWS = sa.select(servers).where(one_of(servers.c.id, "ids"))


def read(connection: Connection, ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """By id."""
    return {row["id"]: dict(row) for row in connection.execute(_ROWS, {"ids": ids}).mappings()}
