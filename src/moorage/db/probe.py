"""A small question with a connection of its own, for what is asked before every answer.

The pool, the compiler and the row objects of the ordinary way cost several times what the database needs to
say "nothing new".
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy.engine import Engine

_NAME = b"moorage_probe"
_SETTINGS = (
    b"SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off; "
    b"SET plan_cache_mode = force_generic_plan"
)
"""Its planner would rather read tables through, in the hope of an early hit or of many."""


class Probe:
    """Asks one and the same statement again and again, for one thread after the other.

    It ends with its engine. `postgresql` has the parameters $1, $2, …; `sqlite` has question marks.
    """

    def __init__(self, engine: Engine, *, postgresql: str, sqlite: str) -> None:
        self._engine = engine
        self._is_postgresql = engine.dialect.name == "postgresql"
        self._statement = postgresql if self._is_postgresql else sqlite
        self._line: Any = None
        self._lock = threading.Lock()
        sa.event.listen(engine, "engine_disposed", self.close)

    def rows(self, *parameters: str) -> list[tuple[str, ...]]:
        """As text, and empty where there is nothing.

        A connection that was lost since the last time is made anew, once.
        """
        failure = self._engine.dialect.loaded_dbapi.Error
        with self._lock:
            if self._line is not None:
                try:
                    return self._ask(parameters)
                except failure:
                    self._drop()
            try:
                self._connect()
                return self._ask(parameters)
            except failure as error:
                self._drop()
                raise sa.exc.OperationalError(self._statement, None, error) from error

    def close(self, _engine: object = None) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _connect(self) -> None:
        pooled = self._engine.raw_connection()
        line: Any = pooled.driver_connection
        pooled.detach()
        self._line = line
        if self._is_postgresql:
            _check(line.pgconn.exec_(_SETTINGS), psycopg.pq.ExecStatus.COMMAND_OK)
            _check(line.pgconn.prepare(_NAME, self._statement.encode()), psycopg.pq.ExecStatus.COMMAND_OK)

    def _ask(self, parameters: tuple[str, ...]) -> list[tuple[str, ...]]:
        if not self._is_postgresql:
            found = self._line.execute(self._statement, parameters)
            return [tuple("" if value is None else str(value) for value in row) for row in found]
        answer = self._line.pgconn.exec_prepared(_NAME, [text.encode() for text in parameters])
        _check(answer, psycopg.pq.ExecStatus.TUPLES_OK)
        columns = range(answer.nfields)
        return [
            tuple((answer.get_value(row, column) or b"").decode() for column in columns)
            for row in range(answer.ntuples)
        ]


def as_text(moment: datetime) -> str:
    """A moment as a parameter, in a form that compares with SQLite's text too."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")


def _check(answer: psycopg.pq.abc.PGresult, expected: int) -> None:
    if answer.status != expected:
        raise psycopg.OperationalError(answer.get_error_message())
