"""Writers of one process take turns; who waits too long is told so, as by the database itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest
import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db import database as module
from moorage.db import engine
from moorage.db.database import Database
from moorage.db.tables.aggregates import chores


@pytest.fixture
def database(sqlite_url: str) -> Iterator[Database]:
    connected = engine.connect(sqlite_url)
    yield Database(connected)
    connected.dispose()


def _insert(name: str, connection: sa.Connection) -> None:
    connection.execute(sa.insert(chores).values(name=name, leased_until=utcnow()))


def test_many_writers_all_come_to_their_turn(database: Database) -> None:
    def write(number: int) -> None:
        for turn in range(20):
            database.transact(partial(_insert, f"{number}-{turn}"))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    with database.read() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(chores)).scalar_one() == 160


def test_a_turn_is_given_back_after_an_error(database: Database) -> None:
    def fail(_connection: object) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        database.transact(fail)
    database.transact(lambda connection: connection.execute(sa.delete(chores)))


def test_who_waits_too_long_is_told(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_WAIT_SECONDS", 0.1)
    refusals: list[str] = []

    def write() -> None:
        try:
            database.transact(lambda connection: connection.execute(sa.delete(chores)))
        except sa.exc.OperationalError as error:
            refusals.append(str(error.orig))

    with database.write():
        other = threading.Thread(target=write)
        other.start()
        other.join(timeout=60)
    assert refusals == ["another thread has been writing for 0.1 s"]
