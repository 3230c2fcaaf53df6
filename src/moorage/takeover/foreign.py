"""The database of another system, as its own configuration names it: read in one snapshot, written in one go.

Unlike our own, nothing of it is set up to our liking: no pragma, no mode of its file: nothing would stay.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from moorage.db import redaction
from moorage.db.engine import set_session
from moorage.takeover.errors import TakeoverError

_WANTED = (
    "a database is named as sqlite:////FILE, postgresql://USER:PASSWORD@HOST/NAME or "
    "mysql://USER:PASSWORD@HOST/NAME"
)


class ForeignDatabase:
    """Use as a context manager; nothing is opened before it is asked for."""

    def __init__(self, url: str) -> None:
        self._url = _parsed(url)
        self.name = self._url.set(query={}).render_as_string(hide_password=True)
        """For people: without the password."""
        self.is_mariadb = self._url.get_backend_name() in ("mysql", "mariadb")
        self._engine: Engine | None = None

    def __enter__(self) -> ForeignDatabase:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._engine is not None:
            self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """All statements see one and the same state, and the database refuses to be written to."""
        with self._connected(read_only=True) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: all of it, or nothing."""
        with self._connected(read_only=False) as connection:
            yield connection

    @contextmanager
    def _connected(self, *, read_only: bool) -> Iterator[Connection]:
        if self._engine is None:
            self._engine = self._made()
        try:
            connection = self._engine.connect()
        except (sa.exc.OperationalError, sa.exc.NoSuchModuleError) as error:
            raise TakeoverError(
                f"{self.name} can't be opened: {getattr(error, 'orig', None) or error}"
            ) from error
        with connection, self._begun(connection, read_only=read_only):
            yield connection

    @contextmanager
    def _begun(self, connection: Connection, *, read_only: bool) -> Iterator[None]:
        if connection.dialect.name == "postgresql":
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=read_only
            )
        with connection.begin():
            if self.is_mariadb and read_only:
                connection.exec_driver_sql("COMMIT")
                connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
            elif connection.dialect.name == "sqlite":
                connection.exec_driver_sql(f"PRAGMA query_only={'ON' if read_only else 'OFF'}")
                connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")
            yield

    def _made(self) -> Engine:
        match self._url.get_backend_name():
            case "sqlite":
                return _sqlite(self._url)
            case "postgresql":
                return _postgresql(self._url)
        return sa.create_engine(
            self._url, hide_parameters=True, isolation_level="REPEATABLE READ", poolclass=sa.NullPool
        )


def _parsed(url: str) -> sa.URL:
    """With the driver that we have, whichever the other system's configuration names."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise TakeoverError(_WANTED) from error
    parsed = parsed.difference_update_query(["plugin"])  # a test cloud's, for the other system's own process
    match parsed.get_backend_name():
        case "sqlite":
            path = parsed.database
            if not path or not Path(path).is_file():
                raise TakeoverError(f"there is no file {path or '(none named)'}: {_WANTED}")
            return parsed.set(drivername="sqlite")
        case "postgresql":
            return parsed.set(drivername="postgresql+psycopg")
        case "mysql" | "mariadb":
            if importlib.util.find_spec("pymysql") is None:
                raise TakeoverError(
                    "for a MariaDB or MySQL the driver is missing: pip install 'moorage[mariadb]'"
                )
            return parsed.set(drivername="mysql+pymysql")
    raise TakeoverError(_WANTED)


def _sqlite(url: sa.URL) -> Engine:
    engine = sa.create_engine(url, hide_parameters=True, poolclass=sa.NullPool)

    @sa.event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves

    return engine


def _postgresql(url: sa.URL) -> Engine:
    engine = sa.create_engine(url, hide_parameters=True, poolclass=sa.NullPool)
    redaction.watch(engine)

    @sa.event.listens_for(engine, "connect", insert=True)
    def on_connect(connection: Any, _record: object) -> None:
        set_session(connection)

    return engine
