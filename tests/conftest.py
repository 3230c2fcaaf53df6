"""Databases for every test: a SQLite file, or a database on a real PostgreSQL."""

from __future__ import annotations

import gc
import itertools
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from moorage.db import engine, migrate
from tests.support import costs, engines, forked_programs, leftovers, order, rabbitmq
from tests.support import postgres as postgres_server
from tests.support.postgres import Postgres
from tests.support.recycled_databases import RecycledDatabases

BACKENDS = ("sqlite", "postgresql")
_serial = itertools.count(1)

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
"""Tests start hundreds of Pythons, each of which would compile all that it imports, Neutron say, anew."""

gc.disable()
"""While all tests are imported and collected, none of which is garbage."""

leftovers.watch()
engines.hurry()
forked_programs.install()

_meter = costs.meter()

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
"""No example fails by the clock: the machine may be busy with others."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: order.rank(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if _meter is None:
        return (yield)
    with _meter.measure(str(item.path.relative_to(order.ROOT)), item.name):
        return (yield)


def pytest_sessionfinish() -> None:
    rabbitmq.leave_rooms()


def pytest_unconfigure(config: pytest.Config) -> None:
    """The names of what failed, after all else: of a long log often only the end is kept."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        for report in [*reporter.stats.get("failed", ()), *reporter.stats.get("error", ())]:
            reporter.write_line(f"{report.outcome}: {report.nodeid} ({report.when})")


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no need to look for garbage in there again and again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def rubbish() -> Iterator[None]:
    """What a file's tests left in cycles goes, with its sockets and files; by itself that would be looked for
    so rarely that a worker comes to have a thousand of them open."""
    yield
    gc.collect()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server a test process; started by the first test that asks for it."""
    with postgres_server.start(postgres_server.HASTY) as server:
        yield server


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the newest schema, to copy: that takes a hundredth of the time to make one."""
    path = tmp_path_factory.mktemp("template") / "moorage.sqlite"
    _migrate(_sqlite_url(path))
    return path


@pytest.fixture(scope="session")
def postgres_databases(postgres: Postgres) -> RecycledDatabases:
    """Likewise."""
    _migrate(postgres.create_database("moorage_template"))
    return RecycledDatabases(postgres, "moorage_template")


@pytest.fixture
def sqlite_url(tmp_path: Path, sqlite_template: Path) -> str:
    return _copied(sqlite_template, tmp_path)


@pytest.fixture
def postgres_url(postgres_databases: RecycledDatabases) -> Iterator[str]:
    with postgres_databases.one() as url:
        yield url


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest) -> str:
    """A database of the newest schema for one test, which runs once on each backend."""
    fixture = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    url: str = request.getfixturevalue(fixture)
    return url


@pytest.fixture(params=BACKENDS)
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any table, for who makes them."""
    if request.param == "sqlite":
        yield _sqlite_url(tmp_path / "moorage.sqlite")
    else:
        server: Postgres = request.getfixturevalue("postgres")
        name = f"empty_{next(_serial)}"
        yield server.create_database(name)
        server.drop_database(name)


@pytest.fixture(scope="module", params=BACKENDS)
def module_database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A database that the tests of one module share: for those that fill it once and only read."""
    if request.param == "sqlite":
        yield _copied(request.getfixturevalue("sqlite_template"), tmp_path_factory.mktemp("database"))
    else:
        databases: RecycledDatabases = request.getfixturevalue("postgres_databases")
        with databases.one() as url:
            yield url


def _migrate(url: str) -> None:
    connected = engine.connect(url)
    migrate.sync(connected)
    connected.dispose()


def _sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def _copied(template: Path, directory: Path) -> str:
    return _sqlite_url(Path(shutil.copy(template, directory)))
