"""Rows that may be there already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.db.upsert import insert_if_absent, upsert

SOURCE = Path(__file__).parents[3] / "src" / "moorage"
BERTHS = sa.Table(
    "berths",
    sa.MetaData(),
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("number", sa.Integer, unique=True),
    sa.Column("visits", sa.Integer),
)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    engine = sa.create_engine(database_url)
    BERTHS.create(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(BERTHS), {"name": "east", "number": 1, "visits": 5})
        yield connection
    engine.dispose()


def rows(connection: Connection) -> list[tuple[str, int, int]]:
    return [tuple(row) for row in connection.execute(sa.select(BERTHS).order_by(BERTHS.c.number))]


def test_a_row_that_is_there_stays_and_others_come(connection: Connection) -> None:
    more = [{"name": "east", "number": 7, "visits": 0}, {"name": "west", "number": 2, "visits": 0}]
    connection.execute(insert_if_absent(connection, BERTHS, key=["name"]), more)
    assert rows(connection) == [("east", 1, 5), ("west", 2, 0)]


def test_another_collision_than_that_of_the_key_is_an_error(connection: Connection) -> None:
    taken = {"name": "west", "number": 1, "visits": 0}
    with pytest.raises(sa.exc.IntegrityError), connection.begin_nested():
        connection.execute(insert_if_absent(connection, BERTHS, key=["name"]), taken)
    connection.execute(insert_if_absent(connection, BERTHS), taken)
    assert rows(connection) == [("east", 1, 5)]


def test_only_what_is_renewed_is_taken_over(connection: Connection) -> None:
    new = [{"name": "east", "number": 3, "visits": 0}, {"name": "west", "number": 2, "visits": 0}]
    connection.execute(upsert(connection, BERTHS, ["name"], renewed=["number"]), new)
    assert rows(connection) == [("west", 2, 0), ("east", 3, 5)]


def test_a_value_may_be_computed_from_the_old_one(connection: Connection) -> None:
    grown = {"visits": BERTHS.c.visits + 1}
    statement = upsert(connection, BERTHS, ["name"], computed=grown)
    connection.execute(statement.values(name="east", number=1, visits=1))
    connection.execute(statement.values(name="west", number=2, visits=1))
    assert rows(connection) == [("east", 1, 6), ("west", 2, 1)]


@pytest.mark.parametrize(("bound", "wins"), [(5, True), (4, False)])
def test_a_condition_that_fails_leaves_the_row_alone(
    connection: Connection, bound: int, *, wins: bool
) -> None:
    statement = upsert(connection, BERTHS, ["name"], renewed=["visits"], only_if=BERTHS.c.visits <= bound)
    written = connection.execute(
        statement.values(name="east", number=1, visits=0).returning(BERTHS.c.name)
    ).all()
    assert (len(written) == 1) is wins
    assert rows(connection) == [("east", 1, 0 if wins else 5)]


def test_it_is_written_here_only() -> None:
    others = [path for path in SOURCE.rglob("*.py") if "on_conflict_do" in path.read_text()]
    assert others == [SOURCE / "db" / "upsert.py"]
