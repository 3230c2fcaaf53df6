"""Eras of the database: none comes twice, and a process of an earlier one writes nothing into a later one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from moorage.cli.embedded import data_claim
from moorage.cli.errors import CommandError
from moorage.cli.manage.manage import commands
from moorage.core.clock import utcnow
from moorage.db import engine, era, era_fence, migrate, revisions
from moorage.db.database import Database
from moorage.db.tables.compute import flavors, nodes, operations, servers
from moorage.db.tables.revisions import revisions as numbers
from moorage.ledger import leasing
from tests.functional.conductor.backups import Backup, manage


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    migrate.sync(connected)
    yield Database(connected)
    connected.dispose()


def say_restored(database: Database, database_url: str, *more: str) -> str:
    """All connections end by that, ours too."""
    said = manage(database_url, "db", "restored", *more)
    database.engine.dispose()
    return said


def current(database: Database) -> era.Era:
    with database.read() as connection:
        return era.current(connection)


def flavor_id(database: Database, name: str) -> int:
    row = {"flavorid": name, "name": name, "vcpus": 1, "ram": 1, "disk": 1}
    statement = sa.insert(flavors).values(row).returning(flavors.c.id)
    return int(database.transact(lambda connection: connection.execute(statement).scalar_one()))


def test_an_era_is_later_than_that_of_any_backup(database: Database, database_url: str) -> None:
    assert current(database) == era.Era(1, 0, None, False)
    backup = Backup(database_url)
    say_restored(database, database_url)
    first = current(database)
    assert first.is_held
    assert first.number >= int(time.time()) - 60
    say_restored(database, database_url)
    second = current(database)
    backup.restore()
    assert current(database).number == 1
    wait = second.number - int(time.time())
    if wait >= 0:
        time.sleep(wait + 1)  # the clock has to have gone on since: a restore takes longer than that
    say_restored(database, database_url)
    assert current(database).number > second.number > first.number


def test_a_release_ends_what_is_held_once(database: Database, database_url: str) -> None:
    say_restored(database, database_url)
    assert "released" in say_restored(database, database_url, "--release")
    assert not current(database).is_held
    assert current(database).least == 0
    with pytest.raises(AssertionError):
        say_restored(database, database_url, "--release")


def test_no_id_is_given_out_again(database: Database, database_url: str) -> None:
    before = flavor_id(database, "one")
    backup = Backup(database_url)
    later = flavor_id(database, "two")
    backup.restore()
    say_restored(database, database_url)
    assert flavor_id(database, "three") > later > before


def test_no_revision_is_one_that_somebody_remembers(database: Database, database_url: str) -> None:
    database.transact(lambda connection: revisions.grow(connection, "flavors"))
    backup = Backup(database_url)
    database.transact(lambda connection: revisions.grow(connection, "flavors"))
    backup.restore()
    say_restored(database, database_url)
    with database.read() as connection:
        assert connection.execute(sa.select(numbers.c.revision)).scalar_one() > 2


def test_who_held_a_lease_at_the_backup_does_not_hold_it_any_more(
    database: Database, database_url: str
) -> None:
    server: dict[str, Any] = {"uuid": "u", "project_id": "p", "user_id": "u", "name": "n", "hostname": "h"}
    server |= {"reservation_id": "r", "flavor": {}, "flavorid": "1", "vm_state": "active"}

    def write(connection: sa.Connection) -> int:
        made = connection.execute(sa.insert(servers).values(server).returning(servers.c.id)).scalar_one()
        due = {"server_id": made, "kind": "build", "step": "begin", "due_at": utcnow()}
        return int(
            connection.execute(sa.insert(operations).values(due).returning(operations.c.id)).scalar_one()
        )

    operation = database.transact(write)
    database.transact(lambda connection: leasing.lease(connection, "frozen", ["build"], 10, 600))
    say_restored(database, database_url)
    assert database.transact(lambda connection: leasing.still_mine(connection, "frozen", [operation])) == {}
    least = current(database).least
    assert not leasing.DueCheck(database, ["build"]).any(least)
    assert leasing.DueCheck(database, ["build"]).any()
    leased = database.transact(
        lambda connection: leasing.lease(connection, "other", ["build"], 10, 600, least)
    )
    assert leased == []
    say_restored(database, database_url, "--release")
    (resumed,) = database.transact(
        lambda connection: leasing.lease(connection, "other", ["build"], 10, 600, current(database).least)
    )
    assert (resumed.id, resumed.resumed) == (operation, True)


def test_a_process_of_an_earlier_era_ends_before_it_writes(database_url: str) -> None:
    connected = engine.connect(database_url)
    migrate.sync(connected)
    connected.dispose()
    process = engine.connect(database_url)
    left: list[bool] = []
    era_fence.watch(process, lambda: left.append(True))
    frozen = Database(process)
    assert flavor_id(frozen, "before")
    manage(database_url, "db", "restored")
    if not frozen.is_postgresql:  # its file is another one after a restore
        process.dispose()
    with pytest.raises(sa.exc.OperationalError):
        flavor_id(frozen, "late")
    assert left
    other = Database(engine.connect(database_url))
    with other.read() as connection:
        assert connection.execute(sa.select(flavors.c.name)).scalars().all() == ["before"]
    other.engine.dispose()
    process.dispose()


def test_an_embedded_database_is_copied_and_restored(tmp_path: Path) -> None:
    """A copy of the file alone would lack what was written last."""
    data, copy = tmp_path / "data", tmp_path / "copy.sqlite"
    data.mkdir()
    file = data / "moorage.sqlite"
    connected = engine.connect(f"sqlite:///{file}")
    migrate.sync(connected)
    database = Database(connected)
    flavor_id(database, "before")
    assert manage("", "db", "backup", str(copy), "--data", str(data)) == f"{file} -> {copy}\n"
    assert copy.stat().st_mode & 0o077 == 0
    flavor_id(database, "after")
    connected.dispose()
    for path in data.glob("moorage.sqlite*"):
        path.unlink()
    shutil.copy(copy, file)
    claimed = data_claim.claim(data)
    refused = CliRunner().invoke(commands, ["db", "restored", "--data", str(data)])
    assert refused.exit_code != 0
    assert "moorage up" in str(refused.exception)
    claimed.close()
    assert "has begun" in manage("", "db", "restored", "--data", str(data))
    with database.read() as connection:
        assert connection.execute(sa.select(flavors.c.name)).scalars().all() == ["before"]
        assert era.current(connection).is_held
    with data_claim.claim(data):  # it runs, or nobody could have looked
        assert "released" in manage("", "db", "restored", "--release", "--data", str(data))
    assert not current(database).is_held
    connected.dispose()


def test_an_embedded_database_of_an_older_release_is_brought_up_first(tmp_path: Path) -> None:
    connected = engine.connect(f"sqlite:///{tmp_path / 'moorage.sqlite'}")
    migrate.sync(connected, "0022")
    assert "has begun" in manage("", "db", "restored", "--data", str(tmp_path))
    assert current(Database(connected)).is_held
    connected.dispose()


def test_a_directory_without_a_database_is_left_alone(tmp_path: Path) -> None:
    refused = CliRunner().invoke(commands, ["db", "restored", "--data", str(tmp_path)])
    assert isinstance(refused.exception, CommandError)
    assert str(refused.exception) == f"there is no database {tmp_path / 'moorage.sqlite'}"
    assert list(tmp_path.iterdir()) == []


def test_a_copy_that_can_not_be_made_is_a_sentence(tmp_path: Path) -> None:
    file, copy = tmp_path / "moorage.sqlite", tmp_path / "missing" / "copy.sqlite"
    file.touch()
    refused = CliRunner().invoke(commands, ["db", "backup", str(copy), "--data", str(tmp_path)])
    assert isinstance(refused.exception, CommandError)
    assert str(refused.exception) == f"{copy} can't be written: No such file or directory"


def test_epochs_of_nodes_are_later_than_any_that_a_host_knows(database: Database, database_url: str) -> None:
    row = {"uuid": "u", "name": "n", "host": "h", "epoch": 3, "hypervisor_type": "ironic", "facts": {}}
    with database.write() as connection:
        connection.execute(sa.insert(nodes).values(row))
    backup = Backup(database_url)
    with database.write() as connection:
        connection.execute(sa.update(nodes).values(epoch=nodes.c.epoch + 4, host="other"))
    backup.restore()
    say_restored(database, database_url)
    with database.read() as connection:
        assert connection.execute(sa.select(nodes.c.epoch)).scalar_one() > 7
