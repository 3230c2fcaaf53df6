"""Large indexes are built beside those who write; what was cut off is built again."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from moorage.db import declared, engine, large_indexes, migrate, schema_fit
from tests.support.processes import wait_until

NAME = "ix_revisions_revision"


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    """Those of this release, and one more."""
    directory = tmp_path / "migrations"
    shutil.copytree(declared.MIGRATIONS, directory)
    (directory / "versions" / "0901_of_a_test.py").write_text(
        f'revision = "0901"\ndown_revision = "{declared.newest()}"\nkind = "expand"\n'
        f'indexes = {{"{NAME}": "revisions (revision)"}}\n\ndef upgrade():\n    pass\n'
    )
    return directory


@pytest.fixture
def database(database_url: str) -> Iterator[Engine]:
    connected = engine.connect(database_url)
    yield connected
    connected.dispose()


def test_it_is_there_after_a_sync_and_stays(database: Engine, scripts: Path) -> None:
    wanted = large_indexes.wanted("0901", scripts)
    assert large_indexes.missing(database, wanted) == [NAME]
    assert migrate.sync(database, scripts=scripts).indexes == [NAME]
    assert large_indexes.missing(database, wanted) == []
    assert migrate.sync(database, scripts=scripts).indexes == []


def test_a_later_migration_takes_it_away(scripts: Path) -> None:
    (scripts / "versions" / "0902_of_a_test.py").write_text(
        f'revision = "0902"\nkind = "contract"\noldest = "0901"\nindexes = {{"{NAME}": ""}}\n'
    )
    assert NAME in large_indexes.wanted("0901", scripts)
    assert NAME not in large_indexes.wanted("0902", scripts)


def test_writers_go_on_and_what_was_cut_off_is_built_again(postgres_url: str, scripts: Path) -> None:
    """A transaction that has written keeps the index from being finished, so that we can look at it half done
    and end whoever builds it; it keeps nobody from writing."""
    database = engine.connect(postgres_url)
    migrate.sync(database)
    failures: list[BaseException] = []

    def build() -> None:
        try:
            migrate.sync(database, scripts=scripts)
        except sa.exc.DBAPIError as error:
            failures.append(error)

    with psycopg.connect(postgres_url.replace("+psycopg", "")) as long, database.connect() as watching:
        add_row(long, 1)
        builder = threading.Thread(target=build)
        builder.start()
        wait_until(lambda: is_unfinished(watching), "a half-built index")
        with psycopg.connect(postgres_url.replace("+psycopg", "")) as other:
            add_row(other, 2)
        assert end_builder(watching) == 1
        builder.join(30)
        long.commit()
    assert len(failures) == 1
    wanted = large_indexes.wanted("0901", scripts)
    assert (schema_fit.version(database), large_indexes.missing(database, wanted)) == ("0901", [NAME])
    assert migrate.sync(database, scripts=scripts).indexes == [NAME]
    assert large_indexes.missing(database, wanted) == []
    database.dispose()


def add_row(line: psycopg.Connection[tuple[object, ...]], number: int) -> None:
    line.execute("INSERT INTO revisions VALUES (%s, 1)", [f"berths-{number}"])


def is_unfinished(watching: sa.Connection) -> bool:
    query = sa.text("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)")
    found = watching.execute(query, {"name": NAME}).scalar_one_or_none()
    watching.rollback()
    return found is False


def end_builder(watching: sa.Connection) -> int:
    """As a kill of `db sync` does."""
    query = sa.text(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE 'CREATE INDEX CONCURRENTLY%'"
    )
    ended = int(watching.execute(query).scalar_one())
    watching.rollback()
    return ended
