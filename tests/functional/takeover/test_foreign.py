"""A foreign database is read as of one moment, and never written to by mistake."""

from __future__ import annotations

import importlib.util

import pytest
import sqlalchemy as sa

from moorage.takeover import releases
from moorage.takeover.errors import TakeoverError
from moorage.takeover.foreign import ForeignDatabase
from moorage.takeover.remainders import Remainders, Weight
from tests.support.postgres import Postgres

KNOWN = {"abc": "Some release"}


@pytest.fixture
def url(empty_database_url: str) -> str:
    """Of a database with one table."""
    _fill(empty_database_url)
    return empty_database_url


def _fill(url: str) -> None:
    made = sa.create_engine(url)
    with made.begin() as connection:
        connection.execute(sa.text("CREATE TABLE things (name VARCHAR(20))"))
        connection.execute(sa.text("INSERT INTO things VALUES ('first')"))
    made.dispose()


def _names(connection: sa.Connection) -> list[str]:
    return list(connection.execute(sa.text("SELECT name FROM things ORDER BY name")).scalars())


def test_all_statements_of_a_reader_see_the_same_state(postgres: Postgres) -> None:
    """On SQLite a reader keeps writers out."""
    url = postgres.create_database("foreign_snapshot")
    _fill(url)
    with ForeignDatabase(url) as foreign, foreign.read() as reader:
        assert _names(reader) == ["first"]
        with ForeignDatabase(url) as other, other.write() as writer:
            writer.execute(sa.text("INSERT INTO things VALUES ('second')"))
        assert _names(reader) == ["first"]


def test_a_reader_can_not_write(url: str) -> None:
    with ForeignDatabase(url) as foreign:
        with pytest.raises(sa.exc.DBAPIError), foreign.read() as reader:
            reader.execute(sa.text("INSERT INTO things VALUES ('second')"))
        with foreign.read() as reader:
            assert _names(reader) == ["first"]


def test_a_write_that_fails_leaves_nothing(url: str) -> None:
    with ForeignDatabase(url) as foreign:
        with pytest.raises(sa.exc.DBAPIError):
            _insert_and_fail(foreign)
        with foreign.read() as reader:
            assert _names(reader) == ["first"]


def _insert_and_fail(foreign: ForeignDatabase) -> None:
    with foreign.write() as writer:
        writer.execute(sa.text("INSERT INTO things VALUES ('second')"))
        writer.execute(sa.text("INSERT INTO nothing VALUES (1)"))


def test_a_name_for_people_has_no_password() -> None:
    with ForeignDatabase("postgresql+psycopg2://placement:secret@db/placement?sslmode=require") as foreign:
        assert foreign.name == "postgresql+psycopg://placement:***@db/placement"


@pytest.mark.parametrize("url", ["", "nonsense", "oracle://a@b/c", "sqlite://", "sqlite:////nowhere/at/all"])
def test_what_is_no_database_is_said(url: str) -> None:
    with pytest.raises(TakeoverError, match="postgresql://USER"):
        ForeignDatabase(url)


def test_a_server_that_is_not_there_is_said() -> None:
    with (
        ForeignDatabase("postgresql://placement:secret@127.0.0.1:1/placement") as foreign,
        pytest.raises(TakeoverError, match="can't be opened") as refused,
        foreign.read(),
    ):
        pass
    assert "secret" not in str(refused.value)


def test_a_missing_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(TakeoverError, match=r"pip install 'moorage\[mariadb\]'"):
        ForeignDatabase("mysql+pymysql://placement:secret@db/placement?charset=utf8")


def test_an_unknown_schema_is_refused(url: str) -> None:
    with ForeignDatabase(url) as foreign:
        with foreign.read() as reader, pytest.raises(TakeoverError, match=r"no revision.*abc .Some release"):
            releases.require_known(reader, KNOWN, what="a harbour's database", command="harbour sync")
        with foreign.write() as writer:
            writer.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
            writer.execute(sa.text("INSERT INTO alembic_version VALUES ('xyz')"))
        with foreign.read() as reader, pytest.raises(TakeoverError, match=r"xyz.*`harbour sync`"):
            releases.require_known(reader, KNOWN, what="a harbour's database", command="harbour sync")
        with foreign.write() as writer:
            writer.execute(sa.text("UPDATE alembic_version SET version_num = 'abc'"))
        with foreign.read() as reader:
            found = releases.require_known(reader, KNOWN, what="a harbour", command="harbour sync")
        assert found == "abc"


def test_remainders_say_what_blocks_and_name_some() -> None:
    remainders = Remainders()
    remainders.add("none", Weight.BLOCKING, "of which there are none", 0)
    remainders.add("orphans", Weight.OPTIONAL, "rows of nobody", 30, [f"row {n}" for n in range(30)])
    remainders.add("noise", Weight.NOTICE, "rows that nobody sees", 2)
    assert [remainder.kind for remainder in remainders.blocking(leave_out=False)] == ["orphans"]
    assert remainders.blocking(leave_out=True) == []
    lines = list(remainders.lines())
    assert lines[0] == "optional (30): rows of nobody"
    assert lines[21:] == ["  … and 10 more", "notice (2): rows that nobody sees"]
