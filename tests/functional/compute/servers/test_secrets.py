"""What a user gives a server never gets into a log, whatever the database says."""

from __future__ import annotations

import base64
import io
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.db import bulk
from moorage.db.tables.placement import providers
from tests.functional.compute.servers.conftest import Cloud

SECRET = "correct-horse-battery-staple"
USER_DATA = base64.b64encode(f"#cloud-config\npassword: {SECRET}\n".encode()).decode()

POSTGRESQL = {
    "a row that is not allowed": "ALTER TABLE servers ADD CHECK (user_data IS NULL)",
    "a value that does not fit": "ALTER TABLE servers ALTER user_data TYPE integer USING NULL",
    "a text that is too long": "ALTER TABLE servers ALTER user_data TYPE varchar(3)",
    "a key that is taken": "CREATE UNIQUE INDEX ON servers (user_data)",
    "a column that is missing": "ALTER TABLE servers DROP COLUMN user_data",
    "a server that shuts down": """
        CREATE FUNCTION shut() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE 'shutting down' USING ERRCODE = '57P01', DETAIL = NEW.user_data; END $$;
        CREATE TRIGGER shut BEFORE INSERT ON servers FOR EACH ROW EXECUTE FUNCTION shut()""",
}
SQLITE = {
    "a row that is not allowed": """
        CREATE TRIGGER refuse BEFORE INSERT ON servers WHEN NEW.user_data IS NOT NULL
        BEGIN SELECT RAISE(ABORT, 'not allowed'); END""",
    "a key that is taken": "CREATE UNIQUE INDEX only_one ON servers (user_data)",
    "a column that is missing": "ALTER TABLE servers DROP COLUMN user_data",
}


@pytest.fixture
def logged() -> Iterator[Callable[[], str]]:
    """All that is logged, as an operator sees it."""
    stream, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream.getvalue
    root.removeHandler(handler)
    root.setLevel(level)


def _provoke(cloud: Cloud, trouble: str) -> None:
    statement = (POSTGRESQL if cloud.database.is_postgresql else SQLITE).get(trouble)
    if statement is None:
        pytest.skip("SQLite stores any value in any column")
    with cloud.database.write() as connection:
        connection.exec_driver_sql(statement)


def _has_secret(text: str) -> bool:
    return any(part in text for part in (SECRET, USER_DATA, USER_DATA[:16], USER_DATA[-16:]))


@pytest.mark.parametrize("trouble", POSTGRESQL)
def test_no_trouble_of_the_database_tells_user_data(
    cloud: Cloud, trouble: str, logged: Callable[[], str]
) -> None:
    if trouble == "a key that is taken":
        cloud.alice.booted(user_data=USER_DATA)
    _provoke(cloud, trouble)
    answer = cloud.alice.boot(user_data=USER_DATA)
    assert answer.status_code >= 400
    assert "database" in logged() or "unexpected error" in logged(), "the trouble itself is told"
    assert not _has_secret(logged())
    assert not _has_secret(answer.text)


def test_nor_does_an_error_of_very_many_rows(cloud: Cloud) -> None:
    """These go another way (COPY), whose errors quote the line that was wrong."""
    columns = ("id", "uuid", "name", "generation", "root_id", "updated_at")

    def write(connection: sa.Connection) -> None:
        rows: list[tuple[Any, ...]] = [
            (number, uuids.generate(), f"{SECRET}-{number}", 0, number, utcnow()) for number in range(1, 1000)
        ]
        rows.append((1000, uuids.generate(), f"{SECRET}-1", 0, 1000, utcnow()))
        bulk.insert(connection, providers, columns, rows)

    with pytest.raises(sa.exc.IntegrityError) as caught, cloud.database.write() as connection:
        write(connection)
    told: BaseException | None = caught.value
    while told is not None:
        assert not _has_secret(str(told))
        told = told.__cause__ or told.__context__


def test_the_message_that_is_left_says_what_is_wrong(cloud: Cloud) -> None:
    cloud.alice.booted(user_data=USER_DATA)
    with pytest.raises(sa.exc.IntegrityError) as caught:
        cloud.write(sa.text("INSERT INTO servers SELECT * FROM servers"))
    assert "unique constraint" in str(caught.value).lower()
    assert not _has_secret(str(caught.value))
