"""A database that was used is like the template again, or is not used again."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.postgres import Postgres
from tests.support.recycled_databases import RecycledDatabases

TEMPLATE = """
    CREATE TABLE classes (id serial PRIMARY KEY, name text, size double precision);
    CREATE TABLE users (id serial PRIMARY KEY, class_id integer NOT NULL REFERENCES classes);
    INSERT INTO classes (name, size) VALUES ('kept', 0.1), ('Ω', 2.0 / 3);
"""


def run(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url.replace("+psycopg", ""), client_encoding="utf8", autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.fixture
def databases(postgres: Postgres) -> Iterator[RecycledDatabases]:
    run(postgres.create_database("recycling"), TEMPLATE)
    made = RecycledDatabases(postgres, "recycling")
    with made.one():
        pass  # so that there is one to be used again
    yield made
    for name in made.free:
        postgres.drop_database(name)
    postgres.drop_database("recycling")


def is_like_the_template(url: str) -> bool:
    run(url, "INSERT INTO users (class_id) VALUES (2)")
    rows = run(url, "SELECT u.id, c.name, c.size = 2.0 / 3 FROM users u JOIN classes c ON c.id = class_id")
    ids = run(url, "INSERT INTO classes (name) VALUES ('new') RETURNING id")
    return rows == [(1, "Ω", True)] and ids == [(3,)]


def test_rows_and_numbers_start_anew(databases: RecycledDatabases) -> None:
    for _ in range(3):
        with databases.one() as url:
            assert is_like_the_template(url)
            run(url, "UPDATE classes SET name = 'changed'")
            run(url, "DELETE FROM classes WHERE id = 1")
        assert len(databases.free) == 1


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE users ADD CHECK (id < 100)",
        "ALTER TABLE users ALTER class_id DROP NOT NULL",
        "ALTER TABLE classes ALTER name TYPE varchar(9)",
        "ALTER TABLE classes DROP COLUMN size",
        "CREATE INDEX ON classes (name)",
        "CREATE TABLE further ()",
        "CREATE SCHEMA further",
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = \"UTC\"', current_database()); END $$",
    ],
)
def test_one_with_another_schema_is_not_used_again(databases: RecycledDatabases, change: str) -> None:
    with databases.one() as url:
        run(url, change)
    assert databases.free == []
    with databases.one() as url:
        assert is_like_the_template(url)


def test_who_talks_to_it_still_is_cut_off(databases: RecycledDatabases) -> None:
    with databases.one() as url:
        old = psycopg.connect(url.replace("+psycopg", ""))
    with pytest.raises(psycopg.OperationalError):
        old.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url.replace("+psycopg", ""))
