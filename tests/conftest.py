"""Databases for every test: an empty SQLite file, an empty database on a real PostgreSQL."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import postgres as postgres_server
from tests.support.postgres import Postgres

BACKENDS = ("sqlite", "postgresql")
_serial = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server a test process; started by the first test that asks for it."""
    with postgres_server.start() as server:
        yield server


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return _sqlite_url(tmp_path)


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    yield from _fresh_database(postgres)


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """A fresh, empty database for one test, which runs once on each backend."""
    fixture = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url: str = request.getfixturevalue(fixture)
    return url


@pytest.fixture(scope="module", params=BACKENDS)
def module_database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A database that the tests of one module share: for those that fill it once and only read."""
    if request.param == "sqlite":
        yield _sqlite_url(tmp_path_factory.mktemp("database"))
    else:
        yield from _fresh_database(request.getfixturevalue("postgres"))


def _sqlite_url(directory: Path) -> str:
    return f"sqlite:///{directory / 'moorage.sqlite'}"


def _fresh_database(server: Postgres) -> Iterator[str]:
    name = f"test_{next(_serial)}"
    yield server.create_database(name)
    server.drop_database(name)
