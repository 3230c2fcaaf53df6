"""Engines for the two databases that Moorage runs on, set up so that both behave alike."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from oslo_config import cfg
from sqlalchemy.engine import Engine

from moorage.core import private
from moorage.core.config import ConfigError
from moorage.db import connection_count, era_fence, pattern, redaction, statement_timeout

IMMEDIATE = "moorage_immediate"
"""Execution option: this transaction will write, so SQLite takes its write lock at once."""

TRUSTED_IDLE_SECONDS = 1.0
"""A connection that was not used for longer is tried out first: the server may have restarted since."""

LONGEST_WAIT_SECONDS = 60
"""For the one writer that SQLite allows at a time."""

_GIVE_UP = {
    "connect_timeout": 5,
    "tcp_user_timeout": 15_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
"""libpq's words for: a database host that has gone is noticed within seconds, not when TCP gives up."""


_SESSION = {
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "client_encoding": "UTF8",
    "default_transaction_isolation": "read committed",
    "standard_conforming_strings": "on",
    "array_nulls": "on",
    "extra_float_digits": "1",
    "lock_timeout": "0",
}
"""What we rely on, whatever server, database and role are set to. A statement says it, not the start
of the connection, because connection poolers refuse that."""


_ALIKE: dict[str, Any] = {
    "json_serializer": lambda value: msgspec.json.encode(value).decode(),
    "json_deserializer": msgspec.json.decode,
    "hide_parameters": True,
}
"""JSON several times as fast as by the library's own; errors, which are logged, without users' secrets."""


def connect(url: str, *, pool_size: int = 10, sqlite_synchronous: str = "FULL") -> Engine:
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        engine = _sqlite(parsed, pool_size, sqlite_synchronous)
    else:
        engine = _postgresql(parsed, pool_size)
    connection_count.watch(engine, 2 * pool_size)
    return engine


def from_conf(conf: cfg.ConfigOpts) -> Engine:
    options = conf.database
    return connect(
        options.connection, pool_size=options.pool_size, sqlite_synchronous=options.sqlite_synchronous
    )


def for_service(conf: cfg.ConfigOpts) -> Engine:
    """As `from_conf`, for a process that serves others: no statement of it may take for ever, and it ends
    with the era of its database."""
    engine = from_conf(conf)
    statement_timeout.limit(engine, conf.database.statement_timeout)
    era_fence.watch(engine)
    return engine


def _parse(url: str) -> sa.URL:
    """PostgreSQL is always reached with psycopg, the driver that we come with, whatever the URL names."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError:
        parsed = sa.URL.create("nonsense")
    match parsed.get_backend_name():
        case "postgresql":
            return parsed.set(drivername="postgresql+psycopg")
        case "sqlite":
            return parsed
    raise ConfigError("[database] connection must be sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME")


def _postgresql(url: sa.URL, pool_size: int) -> Engine:
    engine = sa.create_engine(
        url,
        **_ALIKE,
        isolation_level="READ COMMITTED",
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_recycle=1800,
        connect_args={name: value for name, value in _GIVE_UP.items() if name not in url.query},
    )

    redaction.watch(engine)

    @sa.event.listens_for(engine, "connect", insert=True)  # before the dialect looks around
    def on_connect(connection: Any, _record: object) -> None:
        set_session(connection)

    @sa.event.listens_for(engine, "checkin")
    def on_checkin(_connection: object, record: Any) -> None:
        record.info["idle_since"] = time.monotonic()

    @sa.event.listens_for(engine, "checkout")
    def on_checkout(connection: Any, record: Any, _proxy: object) -> None:
        """Trying out costs a round trip, so a busy service does not."""
        now = time.monotonic()
        if now - record.info.get("idle_since", now) > TRUSTED_IDLE_SECONDS:
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as error:
                raise sa.exc.InvalidatePoolError from error

    return engine


def set_session(connection: Any) -> None:
    """For a connection of psycopg, before anybody uses it."""
    connection.autocommit = True  # else it ends with the transaction
    connection.execute("; ".join(f"SET {name} = '{value}'" for name, value in _SESSION.items()))
    connection.autocommit = False


def _sqlite(url: sa.URL, pool_size: int, synchronous: str) -> Engine:
    engine = sa.create_engine(
        url,
        **_ALIKE,
        poolclass=sa.QueuePool,
        pool_size=pool_size,
        max_overflow=pool_size,
        connect_args={"check_same_thread": False, "timeout": LONGEST_WAIT_SECONDS},
    )

    @sa.event.listens_for(engine, "do_connect")
    def on_do_connect(*_more: object) -> None:
        if url.database and url.database != ":memory:" and "uri" not in url.query:
            private.database(Path(url.database))

    @sa.event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        connection.create_function("regexp", 2, pattern.search, deterministic=True)
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={synchronous}",
            "foreign_keys=ON",
            f"busy_timeout={1000 * LONGEST_WAIT_SECONDS}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @sa.event.listens_for(engine, "begin")
    def on_begin(connection: sa.Connection) -> None:
        options = connection.get_execution_options()
        if options.get("isolation_level") != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN IMMEDIATE" if options.get(IMMEDIATE) else "BEGIN")

    return engine
