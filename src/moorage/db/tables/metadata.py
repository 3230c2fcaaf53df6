"""The one MetaData that every table belongs to, and column types both databases share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

METADATA = sa.MetaData(
    naming_convention={
        "ix": "ix_%(column_0_label)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""SQLite only numbers rows by itself in a column that is called INTEGER.

A table that numbers its rows has `sqlite_autoincrement=True`: else SQLite gives the id of the newest row
again once that is deleted, while pictures of the fleet, journals, agents and users' scripts still know it.
"""


class Timestamp(sa.types.TypeDecorator[datetime]):
    """A moment in UTC: `timestamptz` on PostgreSQL, text on SQLite, always aware in Python."""

    impl = sa.DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        return dialect.type_descriptor(sa.DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return value if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """SQLite knows no time zones; PostgreSQL's answer is in that of the session."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class TransactionId(sa.types.UserDefinedType[int]):
    """PostgreSQL's 64-bit transaction id (`xid8`); a plain number elsewhere."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "xid8"
