"""`moorage-manage seed`: what a new cloud needs, put there as an operator does it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.cli.embedded import seeding
from moorage.db import engine
from moorage.db.database import Database
from moorage.db.tables.compute import flavors
from moorage.db.tables.images import images
from moorage.images.files import ImageFiles
from moorage.images.service import ImageService
from tests.support import guest_image

MANAGE = Path(sys.executable).parent / "moorage-manage"
FIVE = [flavor[1] for flavor in seeding.FLAVORS]


@pytest.fixture
def config_file(tmp_path: Path, database_url: str) -> Path:
    return _configured(tmp_path, database_url)


def _configured(directory: Path, database_url: str) -> Path:
    path = directory / "moorage.conf"
    path.write_text(f"[database]\nconnection = {database_url}\n")
    return path


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    connected = engine.connect(database_url)
    yield Database(connected)
    connected.dispose()


def run(config_file: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(MANAGE), "--config-file", str(config_file), "seed", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def names(database: Database, column: sa.Column[Any]) -> set[str]:
    with database.read() as connection:
        return set(connection.execute(sa.select(column)).scalars())


def test_it_puts_there_what_is_missing_and_no_more(config_file: Path, database: Database) -> None:
    mine = {"flavorid": "2", "name": "mine", "vcpus": 1, "ram": 1, "disk": 1}
    database.transact(lambda connection: connection.execute(sa.insert(flavors).values(mine)))
    made = json.loads(run(config_file, "--json").stdout)
    assert made["flavors"] == [name for name in FIVE if name != "m1.small"]
    assert "cirros-0.6.3-x86_64-disk" in made["images"]
    again = run(config_file)
    assert (again.returncode, again.stdout) == (0, "flavors: nothing to do\nimages: nothing to do\n")
    assert names(database, flavors.c.name) == {*made["flavors"], "mine"}
    assert names(database, images.c.name) == set(made["images"])


def test_one_kind_may_be_named(config_file: Path, database: Database) -> None:
    assert list(json.loads(run(config_file, "--images", "--json").stdout)) == ["images"]
    assert names(database, flavors.c.name) == set()
    assert json.loads(run(config_file, "--flavors", "--json").stdout) == {"flavors": FIVE}


def test_a_schema_that_is_not_there_is_told_in_a_sentence(tmp_path: Path, empty_database_url: str) -> None:
    said = run(_configured(tmp_path, empty_database_url))
    assert said.returncode == 1
    assert "moorage-manage db sync" in said.stderr
    assert "Traceback" not in said.stderr


def test_a_new_cloud_gets_no_flavor_back_that_was_deleted(database: Database) -> None:
    seeding.seed_new_cloud(database)
    gone = sa.delete(flavors).where(flavors.c.name != "m1.tiny")
    database.transact(lambda connection: connection.execute(gone))
    seeding.seed_new_cloud(database)
    assert names(database, flavors.c.name) == {"m1.tiny"}


def test_the_small_guest_is_put_there_once_and_takes_the_place_of_an_older_one(
    database: Database, tmp_path: Path
) -> None:
    images_of = ImageService(database, ImageFiles(tmp_path / "images"), 1024 * 1024)
    assert seeding.add_guest_image(images_of, tmp_path) is None, "nobody has made it"
    ids = []
    for content in (b"first", b"first", b"second"):
        (tmp_path / "disk.qcow2").write_bytes(content)
        ids.append(seeding.add_guest_image(images_of, tmp_path))
        (found,) = images_of.catalogue.select({"moorage_guest": "true"})
        assert (found.id, found.status, found.size) == (ids[-1], "active", len(content))
    assert ids[0] == ids[1] != ids[2]


def test_it_is_looked_for_where_it_is_made() -> None:
    assert seeding.GUEST_DIRECTORY == guest_image.DIRECTORY
