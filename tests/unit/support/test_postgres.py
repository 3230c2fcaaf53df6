"""The test database itself: if it lies, every other test does."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from sqlalchemy import create_engine, text

from tests.support import postgres as postgres_server
from tests.support.postgres import Postgres


def test_each_test_gets_an_empty_database_of_the_backend_it_names(empty_database_url: str) -> None:
    engine = create_engine(empty_database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE t (n INTEGER)"))
        connection.execute(text("INSERT INTO t VALUES (1)"))
        assert connection.execute(text("SELECT n FROM t")).scalars().all() == [1]
    engine.dispose()


def test_the_server_is_durable_and_not_root() -> None:
    with postgres_server.start() as server:
        assert os.stat(f"/proc/{server.pid}").st_uid != 0
        with psycopg.connect(server.url.replace("+psycopg", "")) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("on",)


def test_a_template_is_copied_and_a_dropped_database_is_gone(postgres: Postgres) -> None:
    filled = postgres.create_database("template_filled")
    with psycopg.connect(filled.replace("+psycopg", "")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 7 AS n")
    copy = postgres.create_database("template_copy", template="template_filled")
    with psycopg.connect(copy.replace("+psycopg", "")) as connection:
        assert connection.execute("SELECT n FROM t").fetchone() == (7,)
    postgres.drop_database("template_copy")
    postgres.drop_database("template_filled")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(copy.replace("+psycopg", ""))


def test_stopping_ends_the_process_and_removes_the_data() -> None:
    script = (
        "from tests.support import postgres\n"
        "with postgres.start() as server:\n"
        "    print(server.pid, server.home, flush=True)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    pid, home = run.stdout.split()
    assert not os.path.exists(f"/proc/{pid}")
    assert not os.path.exists(home)
