"""A statement that takes too long is given up, on both databases, and its connection is of use afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.db import engine, statement_timeout
from moorage.db.probe import Probe
from moorage.http.app import is_overdue
from tests.support.compute import cloud_on

LONG = """WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000000000)
          SELECT count(*) FROM numbers"""


@pytest.fixture
def connected(database_url: str) -> Iterator[sa.Engine]:
    made = engine.connect(database_url, pool_size=1)
    statement_timeout.limit(made, 0.5)
    yield made
    made.dispose()


def test_a_long_statement_is_given_up_and_the_next_one_is_not(connected: sa.Engine) -> None:
    begun = time.monotonic()
    for _ in range(2):
        with connected.connect() as connection, pytest.raises(sa.exc.OperationalError) as raised:
            connection.exec_driver_sql(LONG)
        assert is_overdue(raised.value)
        with connected.connect() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    assert time.monotonic() - begun < 30


def test_each_statement_has_the_whole_time(connected: sa.Engine) -> None:
    with connected.connect() as connection:
        for _ in range(7):
            time.sleep(0.1)
            many = LONG.replace("1000000000", "100000" if connection.dialect.name == "sqlite" else "1000")
            assert connection.exec_driver_sql(many).scalar()


def test_a_probe_is_not_given_up_for_an_earlier_statement(connected: sa.Engine) -> None:
    with connected.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
    many = LONG.replace("1000000000", "200000")
    probe = Probe(connected, postgresql=many, sqlite=many)
    time.sleep(0.6)
    assert probe.rows() == [("200000",)]
    probe.close()


def test_without_a_bound_nothing_is_given_up(database_url: str) -> None:
    made = engine.connect(database_url)
    statement_timeout.limit(made, 0)
    with made.connect() as connection:
        assert connection.exec_driver_sql(LONG.replace("1000000000", "300000")).scalar() == 300000
    made.dispose()


def test_whoever_asked_is_told(postgres_url: str) -> None:
    with cloud_on(postgres_url, {"database.statement_timeout": 0.5}) as cloud:
        other = engine.connect(postgres_url)
        with other.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE servers IN ACCESS EXCLUSIVE MODE")
            answer = cloud.admin.get("/servers")
        other.dispose()
        assert (answer.status, *answer.fault) == (
            503,
            "serviceUnavailable",
            "The database took too long to answer.",
        )
        assert cloud.admin.get("/servers").status == 200
