"""What the engines of a test process have in common: SQL that one of them has compiled, and no time to lose.

Each test has a database and so an engine of its own, which would compile each statement anew: a third of what
a test with a database costs. The databases of a process are of the same two kinds, set up alike. And a
test's own process does not survive a power cut: SQLite need not wait for the disk.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.util import LRUCache

_LARGEST = 5000
_HASTY = "moorage_tests_hasty"


class CompiledStatements(LRUCache[Any, Any]):
    """What SQLAlchemy takes as a cache; a dialect counts by its name, not as the one engine's."""

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(_shared(key), default)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_shared(key), value)


def _shared(key: tuple[Any, ...]) -> tuple[Any, ...]:
    dialect, *statement = key
    return (dialect.name, dialect.driver, *statement)


def hurry() -> None:
    """From now on, in this process."""
    statements = CompiledStatements(_LARGEST)

    @sa.event.listens_for(sa.Engine, "engine_connect")
    def on_connect(connection: sa.Connection) -> None:
        if "compiled_cache" not in connection.get_execution_options():
            connection.engine.update_execution_options(compiled_cache=statements)
            connection.execution_options(compiled_cache=statements)
        if connection.dialect.name == "sqlite" and _HASTY not in connection.info:
            connection.info[_HASTY] = True
            line: Any = connection.connection.driver_connection
            line.execute("PRAGMA synchronous=OFF")
