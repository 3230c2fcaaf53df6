"""Engines for the two databases that Moorage runs on, set up so that both behave alike."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.engine import Engine

IMMEDIATE = "moorage_immediate"
"""Execution option: this transaction will write, so SQLite takes its write lock at once."""


def connect(url: str, *, pool_size: int = 10, sqlite_synchronous: str = "FULL") -> Engine:
    if sa.make_url(url).get_backend_name() == "sqlite":
        return _sqlite(url, pool_size, sqlite_synchronous)
    return sa.create_engine(url, pool_size=pool_size, max_overflow=pool_size, pool_recycle=1800)


def from_conf(conf: cfg.ConfigOpts) -> Engine:
    options = conf.database
    return connect(
        options.connection, pool_size=options.pool_size, sqlite_synchronous=options.sqlite_synchronous
    )


def _sqlite(url: str, pool_size: int, synchronous: str) -> Engine:
    engine = sa.create_engine(
        url,
        poolclass=sa.QueuePool,
        pool_size=pool_size,
        max_overflow=pool_size,
        connect_args={"check_same_thread": False, "timeout": 60},
    )

    @sa.event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={synchronous}",
            "foreign_keys=ON",
            "busy_timeout=60000",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def on_begin(connection: sa.Connection) -> None:
        immediate = connection.get_execution_options().get(IMMEDIATE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine
