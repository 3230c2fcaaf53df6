"""A backup of a test's database, as cheap as can be; `tests/integration/operate` makes one by pg_dump."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from typer.testing import CliRunner

from moorage.cli.manage.manage import commands
from moorage.db import engine
from moorage.db.tables.metadata import METADATA

_SEQUENCES = "SELECT sequencename, last_value FROM pg_sequences WHERE last_value IS NOT NULL"


class Backup:
    """All rows but those of the change feed, and how far ids were given out."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._tables = [table for table in METADATA.sorted_tables if table.name != "changes"]
        connected = engine.connect(url)
        with connected.connect() as connection:
            self._rows: dict[str, Sequence[Any]] = {
                table.name: connection.execute(sa.select(table)).mappings().all() for table in self._tables
            }
            numbers = (
                _SEQUENCES if self._is_postgresql(connected) else "SELECT name, seq FROM sqlite_sequence"
            )
            self._numbers: dict[str, int] = dict(connection.exec_driver_sql(numbers).all())
        connected.dispose()

    def restore(self) -> None:
        connected = engine.connect(self._url)
        with connected.begin() as connection:
            for table in reversed(METADATA.sorted_tables):
                connection.execute(sa.delete(table))
            for table in self._tables:
                if self._rows[table.name]:
                    connection.execute(sa.insert(table), [dict(row) for row in self._rows[table.name]])
            setting = (
                "SELECT setval(:name, :last)"
                if self._is_postgresql(connected)
                else "UPDATE sqlite_sequence SET seq = :last WHERE name = :name"
            )
            for name, last in self._numbers.items():
                connection.execute(sa.text(setting), {"name": name, "last": last})
        connected.dispose()

    @staticmethod
    def _is_postgresql(connected: sa.Engine) -> bool:
        return connected.dialect.name == "postgresql"


def manage(url: str, *arguments: str) -> str:
    """What `moorage-manage` says."""
    done = CliRunner().invoke(commands, list(arguments), env={"OS_DATABASE__CONNECTION": url})
    assert done.exit_code == 0, done.output
    return done.output
