"""The desk: requests that wait together are written together, and none of them pays for another."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db import engine
from moorage.db.database import Database
from moorage.db.desk import Desk

numbers = sa.Table("numbers", sa.MetaData(), sa.Column("number", sa.Integer, primary_key=True))


class Refused(Exception):
    pass


class Clerk:
    """Writes numbers down; odd ones above 90 are refused, 1000 breaks the transaction."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.begun = threading.Event()
        self.gate = threading.Event()

    def __call__(self, connection: Connection, wanted: Sequence[int]) -> list[int | Exception]:
        self.begun.set()
        self.gate.wait(10)
        self.batches.append(len(wanted))
        outcomes: list[int | Exception] = []
        for number in wanted:
            if number == 1000:
                raise ValueError("broken")
            if number > 90 and number % 2:
                outcomes.append(Refused(str(number)))
                continue
            connection.execute(sa.insert(numbers).values(number=number))
            outcomes.append(number * 2)
        return outcomes


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    numbers.metadata.create_all(connected)
    yield Database(connected)
    connected.dispose()


def written(database: Database) -> list[int]:
    with database.read() as connection:
        return list(connection.execute(sa.select(numbers.c.number).order_by(numbers.c.number)).scalars())


def ask_together(database: Database, clerk: Clerk, wanted: Sequence[int]) -> list[int | BaseException]:
    """All outcomes; the first one in line is held up until the others wait behind it."""
    desk: Desk[int, int] = Desk(database, clerk)
    with ThreadPoolExecutor(len(wanted)) as pool:
        futures = [pool.submit(desk.submit, wanted[0])]
        clerk.begun.wait(10)
        futures += [pool.submit(desk.submit, number) for number in wanted[1:]]
        while len(desk._waiting) < len(wanted) - 1:
            time.sleep(0.001)
        clerk.gate.set()
        return [future.exception() or future.result() for future in futures]


def test_those_who_wait_share_a_transaction(database: Database) -> None:
    clerk = Clerk()
    assert ask_together(database, clerk, range(1, 11)) == [number * 2 for number in range(1, 11)]
    assert clerk.batches == [1, 9]
    assert written(database) == list(range(1, 11))


def test_a_refusal_concerns_only_who_asked(database: Database) -> None:
    outcomes = ask_together(database, Clerk(), [1, 91, 92])
    assert outcomes[::2] == [2, 184]
    assert isinstance(outcomes[1], Refused)
    assert written(database) == [1, 92]


def test_one_that_breaks_the_transaction_does_not_break_the_others(database: Database) -> None:
    outcomes = ask_together(database, Clerk(), [1, 2, 1000, 3])
    assert isinstance(outcomes[2], ValueError)
    assert [outcomes[at] for at in (0, 1, 3)] == [2, 4, 6]
    assert written(database) == [1, 2, 3]


def test_the_desk_serves_on_after_an_error(database: Database) -> None:
    clerk = Clerk()
    clerk.gate.set()
    desk: Desk[int, int] = Desk(database, clerk)
    with pytest.raises(ValueError, match="broken"):
        desk.submit(1000)
    assert desk.submit(4) == 8
