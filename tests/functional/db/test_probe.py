"""The quick question: right on both databases, and again after its connection was lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.placement import feed
from moorage.placement.feed import ChangeKind, PostgresqlReader, QuickRead, SqliteReader
from tests.support.processes import free_port


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(engine.connect(database_url))
    migrate.sync(database.engine)
    yield database
    database.engine.dispose()


def _change(database: Database) -> None:
    with database.write() as connection:
        feed.append(connection, ChangeKind.PROVIDER, [1])


def test_it_sees_what_others_commit_and_nothing_else(database: Database) -> None:
    probe = feed.probe(database.engine)
    reader = PostgresqlReader() if database.is_postgresql else SqliteReader()
    _change(database)
    with database.snapshot() as connection:
        reader.start(connection)
    assert reader.quick_read(probe) == QuickRead([])
    with database.write() as connection:
        feed.append(connection, ChangeKind.PROVIDER, [2])
        assert reader.quick_read(probe) == QuickRead([])
    assert reader.quick_read(probe).more
    assert reader.quick_read(probe).more, "asking does not use up the news"
    with database.read() as connection:
        assert reader.read(connection).providers == {2}
    assert reader.quick_read(probe) == QuickRead([])
    probe.close()


def test_a_lost_connection_is_made_anew(postgres_url: str) -> None:
    database = Database(engine.connect(postgres_url))
    migrate.sync(database.engine)
    probe = feed.probe(database.engine)
    reader = PostgresqlReader()
    assert reader.quick_read(probe) == QuickRead([])
    others = sa.text(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    with database.read() as connection:
        assert connection.execute(others).all(), "there was a connection to lose"
    _change(database)
    assert reader.quick_read(probe).more
    probe.close()
    database.engine.dispose()


def test_a_database_that_is_away_is_told_as_any_other_statement_tells_it() -> None:
    nowhere = engine.connect(f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/nothing")
    with pytest.raises(sa.exc.OperationalError, match="connection"):
        feed.probe(nowhere).rows("0", "{}")


def test_a_database_that_goes_while_a_connection_is_made(postgres_url: str) -> None:
    """As in a restart: the connection is there, and dies with the first word on it."""
    connected = engine.connect(postgres_url)

    @sa.event.listens_for(connected, "checkout")
    def cut(connection: Any, *_more: object) -> None:
        connection.pgconn.finish()

    with pytest.raises(sa.exc.OperationalError):
        feed.probe(connected).rows("0", "{}")
    connected.dispose()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "rubbish").write_bytes(b"rubbish" * 1000)
    with pytest.raises(sa.exc.OperationalError):
        feed.probe(engine.connect(f"sqlite:///{tmp_path / 'rubbish'}")).rows("0")
