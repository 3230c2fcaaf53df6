"""No table gives an id twice: SQLite's get AUTOINCREMENT, which takes a new table in place of each.

PostgreSQL's sequences never do that.
"""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.engine import Connection

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None
kind = "expand"

_TABLES = (
    *("resource_classes", "traits", "providers", "consumer_types", "consumers"),
    *("flavors", "keypairs", "services", "nodes", "servers", "server_groups", "actions"),
    *("operations", "traces", "migrations"),
)
_REMEMBERED = {
    "providers": "SELECT max(provider_id) FROM changes",
    "flavors": "SELECT max(max(coalesce(old_flavor_id, 0), coalesce(new_flavor_id, 0))) FROM migrations",
    "actions": "SELECT max(action_id) FROM operations",
    "operations": "SELECT max(operation_id) FROM traces",
}
"""Where ids are written down that may be those of rows deleted since."""


def upgrade() -> None:
    connection = op.get_bind()
    if connection.dialect.name == "sqlite":
        for table in _TABLES:
            _rebuild(connection, table)
            _seed(connection, table)


def _rebuild(connection: Connection, table: str) -> None:
    """As the table is, word for word, but for its key; `moorage.db.migrate` lets nothing cascade here."""
    stored = sa.text(
        "SELECT sql FROM sqlite_master WHERE type = :type AND tbl_name = :name AND sql IS NOT NULL"
    )
    old = connection.execute(stored, {"type": "table", "name": table}).scalar_one()
    indexes = connection.execute(stored, {"type": "index", "name": table}).scalars().all()
    for statement in (
        _numbered(old, table),
        f"INSERT INTO numbered_{table} SELECT * FROM {table}",
        f"DROP TABLE {table}",
        f"ALTER TABLE numbered_{table} RENAME TO {table}",
        *indexes,
    ):
        connection.exec_driver_sql(statement)


def _numbered(statement: str, table: str) -> str:
    for pattern, replacement in (
        (rf'^CREATE TABLE "?{table}"?', f"CREATE TABLE numbered_{table}"),
        (r"\bid INTEGER NOT NULL\b", "id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"),
        (rf",\s*CONSTRAINT pk_{table} PRIMARY KEY \(id\)", ""),
    ):
        statement, count = re.subn(pattern, replacement, statement)
        if count != 1:
            raise RuntimeError(
                f"the table {table} is not as our migrations made it: {pattern} is not there once"
            )
    return statement


def _seed(connection: Connection, table: str) -> None:
    """The next id is above every one that is, or is known to have been."""
    present, remembered = f"SELECT max(id) FROM {table}", _REMEMBERED.get(table, "SELECT 0")
    highest = f"max(coalesce(({present}), 0), coalesce(({remembered}), 0))"
    connection.exec_driver_sql(f"DELETE FROM sqlite_sequence WHERE name = '{table}'")
    connection.exec_driver_sql(f"INSERT INTO sqlite_sequence (name, seq) SELECT '{table}', {highest}")
