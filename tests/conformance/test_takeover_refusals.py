"""What a take-over refuses before it writes anything, what it leaves behind, and: it is all or nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from moorage.db import engine
from moorage.db.database import Database
from moorage.db.tables.placement import consumers, inventories, providers, resource_classes, traits
from moorage.placement import owned_trees
from moorage.placement.store import counters
from moorage.placement.takeover import moving, our_checks
from moorage.placement.takeover.moving import MoveResult
from moorage.placement.takeover.our_contents import OurContents
from moorage.placement.takeover.our_writing import OurWriting
from moorage.takeover.errors import TakeoverError
from moorage.takeover.foreign import ForeignDatabase
from tests.support.stage import SqliteCopies, Stage

MANAGE = Path(sys.executable).parent / "moorage-manage"
ROOM = (
    "INSERT INTO inventories (id, resource_provider_id, resource_class_id, total, reserved, min_unit,"
    " max_unit, step_size, allocation_ratio) VALUES"
)
HELD = "INSERT INTO allocations (id, resource_provider_id, consumer_id, resource_class_id, used) VALUES"
OWNER = "INSERT INTO consumers (id, uuid, project_id, user_id, generation) VALUES"
WHO = (
    "INSERT INTO resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id) VALUES"
)

# A tree whose root is younger than its child, a name of a release to come, and two consumers.
CONTENTS = (
    f"{WHO} (1, 'child', 'child', 7, 2, 2), (2, 'root', 'root', 3, 2, NULL)",
    f"{ROOM} (1, 1, 0, 8, 9, 1, 8, 1, 16.123456789), (2, 2, 1, 512, 0, 1, 512, 1, 1.5)",
    "INSERT INTO traits (id, name) VALUES (9001, 'HW_OF_TOMORROW'), (9002, 'CUSTOM_OF_NOBODY')",
    "INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES (1, 9001)",
    "INSERT INTO placement_aggregates (id, uuid) VALUES (1, 'aggregate')",
    "INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id) VALUES (2, 1)",
    "INSERT INTO projects (id, external_id) VALUES (1, 'project')",
    "INSERT INTO users (id, external_id) VALUES (1, 'user')",
    f"{OWNER} (1, 'one', 1, 1, 4), (2, 'two', 1, 1, 1)",
    f"{HELD} (1, 1, 'one', 0, 3), (2, 2, 'one', 1, 64), (3, 1, 'two', 0, 2)",
)

BLOCKING = {
    "nameless": ["UPDATE resource_providers SET name = NULL WHERE id = 1"],
    "rootless": ["UPDATE resource_providers SET root_provider_id = NULL WHERE id = 1"],
    "trees": ["UPDATE resource_providers SET parent_provider_id = 1 WHERE id = 2"],
    "incomplete-consumers": ["DELETE FROM consumers WHERE uuid = 'two'"],
    "unowned-consumers": ["UPDATE consumers SET project_id = 77 WHERE uuid = 'two'"],
    "double-allocations": [f"{HELD} (4, 1, 'two', 0, 2)"],
}
OPTIONAL = {
    "orphan-inventories": [f"{ROOM} (3, 99, 0, 8, 0, 1, 8, 1, 1.0), (4, 1, 98765, 8, 0, 1, 8, 1, 1.0)"],
    "orphan-traits": [
        "INSERT INTO resource_provider_traits (resource_provider_id, trait_id) VALUES (1, 8888)"
    ],
    "orphan-aggregates": ["DELETE FROM placement_aggregates"],
    "orphan-allocations": [f"{HELD} (4, 99, 'two', 0, 2), (5, 1, 'two', 98765, 2)"],
}
NOTICE = {
    "empty-consumers": [f"{OWNER} (3, 'three', 1, 1, 0)"],
    "empty-aggregates": ["INSERT INTO placement_aggregates (id, uuid) VALUES (2, 'lonely')"],
}


def _execute(url: str, *statements: str) -> None:
    connected = sa.create_engine(url)
    with connected.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    connected.dispose()


@pytest.fixture
def empty_reference(reference_service: Stage, tmp_path: Path) -> str:
    assert isinstance(reference_service.databases, SqliteCopies)
    return f"sqlite:///{shutil.copy(reference_service.databases.template, tmp_path / 'empty.sqlite')}"


@pytest.fixture
def reference_url(reference_service: Stage, tmp_path: Path) -> str:
    assert isinstance(reference_service.databases, SqliteCopies)
    url = f"sqlite:///{shutil.copy(reference_service.databases.template, tmp_path / 'full.sqlite')}"
    _execute(url, *CONTENTS)
    return url


@pytest.fixture
def foreign(reference_url: str) -> Iterator[ForeignDatabase]:
    with ForeignDatabase(reference_url) as opened:
        yield opened


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    yield Database(connected)
    connected.dispose()


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Database]:
    """For what does not depend on which database ours is."""
    connected = engine.connect(sqlite_url)
    yield Database(connected)
    connected.dispose()


def _is_empty(database: Database) -> bool:
    with database.snapshot() as connection:
        return OurContents(connection).counts().is_empty


def test_all_comes_over_and_goes_back(
    foreign: ForeignDatabase, database: Database, empty_reference: str
) -> None:
    brought = moving.bring(foreign, database)
    assert brought.result is MoveResult.WRITTEN
    assert brought.remainders.found == []
    with database.snapshot() as connection:
        assert counters.wrong(connection) == []
        (some,) = OurContents(connection).providers()
        child = next(provider for provider in some if provider.uuid == "child")
        assert (child.generation, child.parent, child.root, child.traits) == (
            7,
            "root",
            "root",
            ["HW_OF_TOMORROW"],
        )
        assert child.inventories[0][:-1] == ("VCPU", 8, 9, 1, 8, 1, 16.123456789)
        used = sa.select(inventories.c.used).order_by(inventories.c.used)
        assert list(connection.execute(used).scalars()) == [5, 64]
    with ForeignDatabase(empty_reference) as back:
        assert moving.send(database, back).result is MoveResult.WRITTEN
        assert moving.contrast(back, database).is_equal
        assert moving.send(database, back).result is MoveResult.SAME


def test_whose_trees_are_here_makes_no_difference(
    foreign: ForeignDatabase, database: Database, empty_reference: str
) -> None:
    moving.bring(foreign, database)
    assert owned_trees.give(database, ["root"], "agent-1") == ["root"]
    assert moving.contrast(foreign, database).is_equal
    assert moving.bring(foreign, database).result is MoveResult.SAME
    with ForeignDatabase(empty_reference) as back:
        assert moving.send(database, back).result is MoveResult.WRITTEN
    assert {tree.uuid: tree.user_id for tree in owned_trees.listed(database)}["root"] == "agent-1"


@pytest.mark.parametrize("kind", BLOCKING)
def test_what_can_not_come_over_is_named_and_nothing_is_written(
    kind: str, reference_url: str, foreign: ForeignDatabase, sqlite: Database
) -> None:
    _execute(reference_url, *BLOCKING[kind])
    refused = moving.bring(foreign, sqlite, leave_out=True)
    assert refused.result is MoveResult.BLOCKED
    assert [found.kind for found in refused.remainders.blocking(leave_out=True)] == [kind]
    assert refused.remainders.found[0].examples
    assert _is_empty(sqlite)


@pytest.mark.parametrize("kind", OPTIONAL)
def test_what_refers_to_nothing_is_left_behind_only_on_request(
    kind: str, reference_url: str, foreign: ForeignDatabase, sqlite: Database
) -> None:
    _execute(reference_url, *OPTIONAL[kind])
    refused = moving.bring(foreign, sqlite)
    assert refused.result is MoveResult.BLOCKED
    assert [found.kind for found in refused.remainders.found] == [kind]
    assert _is_empty(sqlite)
    assert moving.bring(foreign, sqlite, leave_out=True).result is MoveResult.WRITTEN
    assert not _is_empty(sqlite)


@pytest.mark.parametrize("kind", NOTICE)
def test_what_nobody_sees_stays_behind_and_is_told(
    kind: str, reference_url: str, foreign: ForeignDatabase, sqlite: Database
) -> None:
    _execute(reference_url, *NOTICE[kind])
    brought = moving.bring(foreign, sqlite)
    assert brought.result is MoveResult.WRITTEN
    assert [found.kind for found in brought.remainders.found] == [kind]


def test_a_dry_run_counts_and_writes_nothing(foreign: ForeignDatabase, database: Database) -> None:
    counted = moving.bring(foreign, database, dry_run=True)
    assert counted.result is MoveResult.COUNTED
    assert (counted.counts.providers, counted.counts.consumers, counted.counts.allocations) == (2, 2, 3)
    assert _is_empty(database)


def test_a_second_import_has_nothing_to_do(foreign: ForeignDatabase, database: Database) -> None:
    for result in (MoveResult.WRITTEN, MoveResult.SAME):
        assert moving.bring(foreign, database).result is result


def test_a_target_with_something_else_is_refused(
    foreign: ForeignDatabase, database: Database, empty_reference: str
) -> None:
    moving.bring(foreign, database)
    with database.write() as connection:
        connection.execute(sa.update(providers).where(providers.c.uuid == "child").values(generation=8))
        connection.execute(sa.update(consumers).where(consumers.c.uuid == "one").values(user_id="other"))
    refused = moving.bring(foreign, database)
    assert refused.result is MoveResult.OCCUPIED
    assert refused.comparison is not None
    lines = {difference.line() for difference in refused.comparison.differences}
    assert lines == {
        "provider child: generation is 7 in the reference, 8 here",
        "consumer one: user is 'user' in the reference, 'other' here",
    }


def test_a_name_of_somebody_else_makes_a_target_no_empty_one(
    foreign: ForeignDatabase, sqlite: Database
) -> None:
    with sqlite.write() as connection:
        connection.execute(sa.insert(traits).values(name="CUSTOM_ELSEWHERE"))
        connection.execute(sa.insert(resource_classes).values(name="CUSTOM_ELSEWHERE"))
    refused = moving.bring(foreign, sqlite)
    assert refused.result is MoveResult.OCCUPIED
    assert refused.comparison is not None
    lines = {difference.line() for difference in refused.comparison.differences}
    assert {"trait CUSTOM_ELSEWHERE: only here", "resource class CUSTOM_ELSEWHERE: only here"} <= lines


def test_what_came_out_other_than_it_went_in_is_taken_back(
    foreign: ForeignDatabase, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = OurWriting.finish

    def spoil(writing: OurWriting) -> None:
        finish(writing)
        writing._connection.execute(sa.update(inventories).values(reserved=1))

    monkeypatch.setattr(OurWriting, "finish", spoil)
    assert moving.bring(foreign, database).result is MoveResult.UNEQUAL
    assert _is_empty(database)


@pytest.mark.parametrize("point", ["providers", "consumers", "providers compared", "consumers compared"])
def test_a_kill_leaves_nothing_and_a_second_run_does_all(
    point: str, reference_url: str, database_url: str
) -> None:
    child = os.fork()
    if child == 0:

        def strike(what: str, done: int, total: int) -> None:
            if what == point:
                os.kill(os.getpid(), signal.SIGKILL)

        with ForeignDatabase(reference_url) as there:
            moving.bring(there, Database(engine.connect(database_url)), progress=strike)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "it came to that point"
    database = Database(engine.connect(database_url))
    assert _is_empty(database)
    with ForeignDatabase(reference_url) as foreign:
        assert moving.bring(foreign, database).result is MoveResult.WRITTEN
    database.engine.dispose()


def test_consumers_without_types_come_over_and_can_not_go_back_there(
    reference_url: str, foreign: ForeignDatabase, sqlite: Database
) -> None:
    columns = "id, uuid, project_id, user_id, generation, created_at, updated_at"
    _execute(
        reference_url,
        f"CREATE TABLE older AS SELECT {columns} FROM consumers",
        "DROP TABLE consumers",
        "DROP TABLE consumer_types",
        "ALTER TABLE older RENAME TO consumers",
        "UPDATE alembic_version SET version_num = 'b5c396305c25'",
    )
    assert moving.bring(foreign, sqlite).result is MoveResult.WRITTEN
    with pytest.raises(TakeoverError, match="b5c396305c25"):
        moving.send(sqlite, foreign)


def test_numbers_that_the_reference_does_not_hold_block_the_way_back(
    foreign: ForeignDatabase, sqlite: Database, empty_reference: str
) -> None:
    moving.bring(foreign, sqlite)
    with sqlite.write() as connection:
        connection.execute(sa.update(providers).values(generation=2**31))
    with ForeignDatabase(empty_reference) as back:
        refused = moving.send(sqlite, back)
        assert refused.result is MoveResult.BLOCKED
        assert [found.kind for found in refused.remainders.found] == ["large-providers"]
        assert moving.send(sqlite, back, dry_run=True).result is MoveResult.BLOCKED


def test_what_mariadb_takes_for_the_same_blocks_the_way_back(
    foreign: ForeignDatabase, database: Database
) -> None:
    moving.bring(foreign, database)
    with database.write() as connection:
        connection.execute(sa.update(providers).where(providers.c.uuid == "child").values(name="ROOT"))
        connection.execute(sa.update(consumers).where(consumers.c.uuid == "one").values(project_id="Project"))
        kinds = [found.kind for found in our_checks.remainders(connection, to_mariadb=True).found]
        assert kinds == ["rounded-ratios", "twins-name", "twins-project_id"]
        assert our_checks.remainders(connection, to_mariadb=False).found == []


def _manage(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(MANAGE), *arguments], capture_output=True, text=True, check=False)


def test_an_operator_comes_over_and_goes_back(
    tmp_path: Path, sqlite_url: str, reference_url: str, empty_reference: str
) -> None:
    config = tmp_path / "moorage.conf"
    config.write_text(f"[database]\nconnection = {sqlite_url}\n")
    command = ("--config-file", str(config), "placement")
    dry = _manage(*command, "import", "--from", reference_url, "--dry-run", "--json")
    assert dry.returncode == 0, dry.stderr
    assert json.loads(dry.stdout)["result"] == "counted"
    differing = _manage(*command, "compare", "--with", reference_url)
    assert differing.returncode == 7, differing.stdout
    assert "providers: 2 compared, 2 differ" in differing.stdout
    assert "provider child: only in the reference" in differing.stdout
    done = _manage(*command, "import", "--from", reference_url)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported; both sides are the same"
    assert "allocations: 3" in done.stdout
    back = _manage(*command, "export", "--to", empty_reference)
    assert (back.returncode, back.stdout.splitlines()[-1]) == (0, "exported; both sides are the same")
    same = json.loads(_manage(*command, "compare", "--with", empty_reference, "--json").stdout)
    assert same["equal"] is True
    _execute(reference_url, "UPDATE alembic_version SET version_num = 'ffffffffffff'")
    unknown = _manage(*command, "compare", "--with", reference_url)
    assert unknown.returncode == 1
    assert (
        "error: the schema of the reference's Placement database has the revision ffffffffffff"
        in unknown.stderr
    )
