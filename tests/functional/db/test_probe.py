"""The quick question: right on both databases, and again after its connection was lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.placement import feed
from moorage.placement.feed import Glance, Kind, PostgresqlReader, SqliteReader


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(engine.connect(database_url))
    migrate.sync(database.engine)
    yield database
    database.engine.dispose()


def _change(database: Database) -> None:
    with database.write() as connection:
        feed.append(connection, Kind.PROVIDER, [1])


def test_it_sees_what_others_commit_and_nothing_else(database: Database) -> None:
    probe = feed.probe(database.engine)
    reader = PostgresqlReader() if database.is_postgresql else SqliteReader()
    _change(database)
    with database.snapshot() as connection:
        reader.start(connection)
    assert reader.glance(probe) == Glance([])
    with database.write() as connection:
        feed.append(connection, Kind.PROVIDER, [2])
        assert reader.glance(probe) == Glance([])
    assert reader.glance(probe).more
    assert reader.glance(probe).more, "asking does not use up the news"
    with database.read() as connection:
        assert reader.read(connection).providers == {2}
    assert reader.glance(probe) == Glance([])
    probe.close()


def test_a_lost_connection_is_made_anew(postgres_url: str) -> None:
    database = Database(engine.connect(postgres_url))
    migrate.sync(database.engine)
    probe = feed.probe(database.engine)
    reader = PostgresqlReader()
    assert reader.glance(probe) == Glance([])
    others = sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with database.read() as connection:
        assert connection.execute(others).all(), "there was a connection to lose"
    _change(database)
    assert reader.glance(probe).more
    probe.close()
    database.engine.dispose()
