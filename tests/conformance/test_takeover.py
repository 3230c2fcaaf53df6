"""Coming over from the reference is exact, and so is going back: every GET answers the same on all sides."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pymysql
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, Phase, given, seed, settings

from moorage.db import engine
from moorage.db.database import Database
from moorage.placement.store import counters
from moorage.placement.takeover import moving
from moorage.placement.takeover import reference_tables as theirs
from moorage.placement.takeover.moving import MoveResult
from moorage.takeover.foreign import ForeignDatabase
from tests.conformance.answers import differences
from tests.conformance.filling import THOROUGH, fill_by_load, fill_by_suites
from tests.conformance.fleets import Fleet
from tests.conformance.queries import NEWEST, Query, any_query
from tests.conformance.reference_env import reference_bin
from tests.conformance.seeds import SEED
from tests.conformance.suites import GabbiRunner
from tests.support import mariadb, reference
from tests.support.debian import Unavailable
from tests.support.mariadb import MariaDb
from tests.support.postgres import Postgres
from tests.support.stage import PostgresCopies, SqliteCopies, Stage, reference_stage
from tests.support.wire import Wire

PARTS = ("", "/inventories", "/usages", "/traits", "/aggregates", "/allocations")
QUERIES = 25


class Origin(NamedTuple):
    """A reference, and how to get an empty database for it."""

    stage: Stage
    url: str
    empty: str


@pytest.fixture
def sqlite_origin(reference_service: Stage, tmp_path: Path) -> Origin:
    assert isinstance(reference_service.databases, SqliteCopies)
    files = [shutil.copy(reference_service.databases.template, tmp_path / name) for name in ("full", "empty")]
    full, empty = (f"sqlite:///{file}" for file in files)
    return Origin(reference_service, full, empty)


@pytest.fixture
def postgresql_origin(tmp_path: Path, postgres: Postgres) -> Iterator[Origin]:
    with reference_stage(tmp_path, postgres) as stage:
        assert isinstance(stage.databases, PostgresCopies)
        full, empty = (postgres.database_url(stage.databases.copies.take()) for _ in range(2))
        yield Origin(stage, full, empty)


@pytest.fixture
def mariadb_server() -> Iterator[MariaDb]:
    try:
        with mariadb.running() as server:
            yield server
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def mariadb_origin(
    tmp_path: Path, mariadb_server: MariaDb, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Origin]:
    """The reference's environment has no driver for it: ours has, and it is pure Python."""
    (tmp_path / "driver").mkdir()
    (tmp_path / "driver" / "pymysql").symlink_to(Path(pymysql.__file__).parent)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "driver"))
    urls = []
    for name in ("full", "empty"):
        urls.append(mariadb_server.create_database(name))
        reference.configure(tmp_path, urls[-1])
        reference.sync_database(tmp_path)
    with Stage("reference", reference_bin() / "python", tmp_path, reference.settings) as stage:
        yield Origin(stage, *urls)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("origin_name", "target_name"),
    [("sqlite", "postgresql"), ("postgresql", "sqlite"), ("mariadb", "sqlite")],
)
def test_every_question_has_the_same_answer_after_coming_over_and_after_going_back(
    origin_name: str, target_name: str, request: pytest.FixtureRequest
) -> None:
    origin: Origin = request.getfixturevalue(f"{origin_name}_origin")
    target: Stage = request.getfixturevalue(f"moorage_on_{target_name}")
    port = origin.stage.put_up(origin.url)
    fleet = fill_by_load(port, len(origin_name))
    if origin_name == "sqlite":
        gabbi: GabbiRunner = request.getfixturevalue("gabbi")
        fill_by_suites(port, gabbi)
    ours = target.fresh()
    database = Database(engine.connect(_url(target)))
    with ForeignDatabase(origin.url) as there, Wire(port) as reference_wire, Wire(ours) as wire:
        assert wire.get("/resource_providers").json() == {"resource_providers": []}, "it has its picture now"
        brought = moving.bring(there, database)
        assert brought.result is MoveResult.WRITTEN, brought
        assert brought.counts.allocations > 10
        questions = list(_questions(origin.url))
        _ask_all(questions, fleet, reference_wire, wire)
        with database.read() as connection:
            assert counters.wrong(connection) == []
        with ForeignDatabase(origin.empty) as back:
            sent = moving.send(database, back)
            assert sent.result is MoveResult.WRITTEN, sent
            assert sent.counts == moving.bring(back, database).counts
            assert moving.contrast(back, database).is_equal
    database.engine.dispose()
    with Wire(origin.stage.put_up(origin.empty)) as reference_wire, Wire(ours) as wire:
        _ask_all(questions if THOROUGH else questions[::5], fleet, reference_wire, wire)
        _write_on(reference_wire)
    origin.stage.take_down()


def _url(stage: Stage) -> str:
    match stage.databases:
        case SqliteCopies(latest=file):
            return f"sqlite:///{file}"
        case PostgresCopies(latest=str(name)) as copies:
            return copies.server.database_url(name)
    raise AssertionError(stage.databases)


def _questions(url: str) -> Iterator[Query]:
    """Half of them, at the newest version or at any other; all at both, for who has the time."""
    dice = random.Random(SEED)
    for path, pairs in _targets(url):
        newest, other = Query(path, pairs, f"1.{NEWEST}"), Query(path, pairs, f"1.{dice.randrange(NEWEST)}")
        if THOROUGH:
            yield from (newest, other)
        elif dice.random() < 0.5:
            yield dice.choice((newest, other))


def _targets(url: str) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Every thing that there is, by every way to ask for it."""
    connected = sa.create_engine(url.replace("+psycopg2", "+psycopg"))
    with connected.connect() as connection:

        def column(column: sa.Column[str]) -> list[str]:
            return [str(value) for value in connection.execute(sa.select(column)).scalars()]

        providers, consumers = column(theirs.providers.c.uuid), column(theirs.consumers.c.uuid)
        classes = [name for name in column(theirs.classes.c.name) if name.startswith(("CUSTOM_", "VCPU"))]
        traits = [name for name in column(theirs.traits.c.name) if name.startswith("CUSTOM_")]
        aggregates, types = column(theirs.aggregates.c.uuid), column(theirs.consumer_types.c.name)
        projects, users = column(theirs.projects.c.external_id), column(theirs.users.c.external_id)
    connected.dispose()
    for provider in providers:
        yield from ((f"/resource_providers/{provider}{part}", ()) for part in PARTS)
        yield "/resource_providers", (("in_tree", provider),)
    yield from ((f"/allocations/{consumer}", ()) for consumer in consumers)
    yield from ((f"/resource_classes/{name}", ()) for name in classes)
    yield from ((f"/traits/{name}", ()) for name in traits)
    yield from (("/resource_providers", (("member_of", uuid),)) for uuid in aggregates)
    yield from (("/resource_providers", (("required", name),)) for name in traits)
    yield from (("/allocation_candidates", (("resources", f"{name}:1"),)) for name in classes)
    for project in projects:
        yield "/usages", (("project_id", project),)
        yield from (("/usages", (("project_id", project), ("user_id", user))) for user in users[:3])
        yield from (("/usages", (("project_id", project), ("consumer_type", name))) for name in types)
    for path in ("/resource_providers", "/resource_classes", "/traits", "/traits?associated=true"):
        yield path, ()


def _ask_all(questions: list[Query], fleet: Fleet, reference_wire: Wire, wire: Wire) -> None:
    for question in questions:
        _ask(question, reference_wire, wire)

    @seed(SEED)
    @settings(
        max_examples=QUERIES,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(any_query(fleet))
    def ask(query: Query) -> None:
        _ask(query, reference_wire, wire)

    ask()


def _ask(query: Query, reference_wire: Wire, wire: Wire) -> None:
    if query.path == "/usages" and reference_wire.get(query.target, query.version).status == 500:
        # By consumer type, on PostgreSQL, the reference can't: its statement lacks a column to group by.
        assert wire.get(query.target, query.version).status == 200
        return
    differing = differences(query, reference_wire, wire)
    assert not differing, "\n  ".join([f"GET {query.target} at {query.version}", *differing])


def _write_on(wire: Wire) -> None:
    """The reference goes on from there: the next numbers are free, and generations hold."""
    provider = {"uuid": "0b8f3f8e-5b0e-4f10-9d6e-3f2f5a1f6c01", "name": "after"}
    for method, path, body in (
        ("POST", "/resource_providers", provider),
        ("PUT", "/resource_classes/CUSTOM_AFTER", None),
        ("PUT", "/traits/CUSTOM_AFTER", None),
        (
            "PUT",
            f"/resource_providers/{provider['uuid']}/inventories",
            {"resource_provider_generation": 0, "inventories": {"CUSTOM_AFTER": {"total": 4}}},
        ),
        (
            "PUT",
            "/allocations/0b8f3f8e-5b0e-4f10-9d6e-3f2f5a1f6c02",
            {
                "allocations": {provider["uuid"]: {"resources": {"CUSTOM_AFTER": 1}}},
                "project_id": "after",
                "user_id": "after",
                "consumer_generation": None,
                "consumer_type": "AFTER",
            },
        ),
        (
            "PUT",
            f"/resource_providers/{provider['uuid']}/aggregates",
            {"resource_provider_generation": 2, "aggregates": ["0b8f3f8e-5b0e-4f10-9d6e-3f2f5a1f6c03"]},
        ),
    ):
        answer = wire.request(method, path, body, version=f"1.{NEWEST}")
        assert answer.status < 300, (path, answer.body)
