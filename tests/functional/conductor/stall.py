"""A conductor that stalls before one of its calls, for as long as its successor is at its work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from moorage.conductor.engine.runner import Runner
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import operations

T = TypeVar("T")


class Stall:
    """Counts the calls that leave a conductor's thread; before a certain one, something happens."""

    def __init__(self) -> None:
        self._left = 0
        self._thread = ""
        self._meanwhile: Callable[[], object] = lambda: None

    @property
    def came(self) -> bool:
        return self._left == 0

    def come(self, number: int, meanwhile: Callable[[], object], thread: str = "MainThread") -> None:
        """Before this call of that thread, counted from now on."""
        self._left, self._thread, self._meanwhile = number, thread, meanwhile

    def watch(self, inner: T) -> T:
        return cast(T, _Watched(inner, self._before_call))

    def _before_call(self) -> None:
        if self._left and threading.current_thread().name == self._thread:
            self._left -= 1
            if not self._left:
                self._meanwhile()


class _Watched:
    def __init__(self, inner: object, before_call: Callable[[], None]) -> None:
        self._inner = inner
        self._before_call = before_call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            self._before_call()
            return found(*args, **options)

        return call


def lose_leases(runner: Runner, database: Database) -> None:
    """As time does to who stalls, only quicker: nobody has a lease any more."""
    past = utcnow() - timedelta(seconds=1)
    for lease in runner._leases._held.values():
        lease.until = past
    with database.write() as connection:
        leased = operations.c.leased_until.is_not(None)
        connection.execute(sa.update(operations).where(leased).values(leased_until=past))
