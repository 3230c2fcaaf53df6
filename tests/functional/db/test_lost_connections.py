"""A PostgreSQL that restarts takes every connection with it; a running service must not fall over that."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa

from moorage.db import engine
from moorage.db.database import Database
from moorage.db.engine import TRUSTED_IDLE_SECONDS


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    database = Database(engine.connect(postgres_url))
    with database.write() as connection:
        connection.exec_driver_sql("CREATE TABLE notes (text varchar)")
    yield database
    database.engine.dispose()


def cut_all(database: Database) -> None:
    """End every connection that the pool keeps, as a restart does."""
    url = database.engine.url
    with psycopg.connect(host=url.host, port=url.port, user=url.username, dbname="postgres") as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", [url.database]
        )


def note(connection: sa.Connection) -> None:
    connection.exec_driver_sql("INSERT INTO notes VALUES ('written')")


def notes(database: Database) -> int:
    with database.read() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM notes").scalar_one())


def test_a_write_is_tried_again_on_a_new_connection(database: Database) -> None:
    cut_all(database)
    database.transact(note)
    assert notes(database) == 1


def test_a_connection_that_is_lost_in_the_middle_of_a_write_is_replaced(database: Database) -> None:
    attempts = []

    def work(connection: sa.Connection) -> None:
        note(connection)
        attempts.append(1)
        if len(attempts) == 1:
            cut_all(database)
            note(connection)

    database.transact(work)
    assert len(attempts) == 2
    assert notes(database) == 1


def test_a_lost_commit_is_not_tried_again(database: Database) -> None:
    """Nobody knows whether it came through: a second try could write twice."""

    def work(connection: sa.Connection) -> None:
        note(connection)
        cut_all(database)

    with pytest.raises(sa.exc.OperationalError):
        database.transact(work)
    assert notes(database) == 0


def test_a_connection_that_was_idle_is_tried_before_it_is_used(database: Database) -> None:
    assert notes(database) == 0
    cut_all(database)
    time.sleep(TRUSTED_IDLE_SECONDS + 0.1)
    assert notes(database) == 0
    with database.snapshot() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1


def test_a_database_that_does_not_answer_is_given_up_soon() -> None:
    """Without a bound, a request would wait for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        unanswered = engine.connect(f"postgresql+psycopg://nobody@127.0.0.1:{silent.getsockname()[1]}/none")
        begun = time.monotonic()
        with pytest.raises(sa.exc.OperationalError):
            unanswered.connect()
    assert time.monotonic() - begun < 10
