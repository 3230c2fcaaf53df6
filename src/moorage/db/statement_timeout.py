"""No statement takes longer than it may: PostgreSQL keeps the time itself, for SQLite we do."""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

_LOOK_EVERY = 50_000
"""Steps of SQLite's machine between two looks at the clock: a few milliseconds."""
_NEVER = float("inf")
_DEADLINE = "moorage_deadline"


def limit(engine: Engine, seconds: float) -> None:
    """Let no statement of the engine's connections take longer; 0 is for ever."""
    if seconds > 0:
        (_on_postgresql if engine.dialect.name == "postgresql" else _on_sqlite)(engine, seconds)


def _on_postgresql(engine: Engine, seconds: float) -> None:
    @sa.event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        connection.execute(f"SET statement_timeout = {max(1, round(1000 * seconds))}")
        connection.commit()


def _on_sqlite(engine: Engine, seconds: float) -> None:
    @sa.event.listens_for(engine, "connect")
    def on_connect(connection: Any, record: Any) -> None:
        info = record.info
        info[_DEADLINE] = _NEVER
        connection.set_progress_handler(lambda: time.monotonic() > info[_DEADLINE], _LOOK_EVERY)

    @sa.event.listens_for(engine, "before_cursor_execute")
    def on_execute(connection: sa.Connection, *_more: object) -> None:
        connection.info[_DEADLINE] = time.monotonic() + seconds

    @sa.event.listens_for(engine, "checkout")
    def on_checkout(_connection: object, record: Any, _proxy: object) -> None:
        """Who asks the driver itself, without our statements, has no deadline."""
        record.info[_DEADLINE] = _NEVER
