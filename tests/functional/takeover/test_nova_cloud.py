"""A cloud of Nova's comes over whole, or not at all; what can't is listed before anything is written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner, Result

from moorage.cli.manage.manage import commands
from moorage.db import engine
from moorage.db.database import Database
from moorage.db.tables.compute import flavors, nodes, quota_usage, servers, services
from tests.lab.nova.rows import NovaRows, uuid
from tests.support import moorage
from tests.support.compute import cloud_on
from tests.support.postgres import Postgres
from tests.support.processes import wait_until


@pytest.fixture(scope="module")
def databases(postgres: Postgres) -> Iterator[NovaRows]:
    made = NovaRows.made(postgres, "cloud", ("north", "south"))
    yield made
    made.close()


@pytest.fixture
def nova(databases: NovaRows) -> NovaRows:
    databases.start_anew()
    return databases


@pytest.fixture
def config(tmp_path: Path, database_url: str) -> Path:
    return moorage.configure(tmp_path / "moorage", database_url)


def _import(config: Path, nova: NovaRows, *options: str) -> Any:
    """The report; or the error, if there is none."""
    words = ["--config-file", str(config), "compute", "import", "--api-database", nova.api.url, "--json"]
    ran = CliRunner().invoke(commands, [*words, *options])
    return json.loads(ran.stdout) if ran.stdout else ran.exception


def _count(database_url: str, table: sa.Table) -> int:
    connected = engine.connect(database_url)
    with connected.connect() as connection:
        found = connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
    connected.dispose()
    return int(found)


def _kinds(report: Any) -> dict[str, int]:
    return {remainder["kind"]: remainder["count"] for remainder in report["remainders"]}


def test_what_cells_number_alike_keeps_its_number_once(
    nova: NovaRows, config: Path, database_url: str
) -> None:
    """A host's own cell comes before the one of servers that never had a host."""
    nova.add_server(1, cell=0, id=5)
    nova.add_server(2, cell=1, id=5)
    nova.add_server(3, cell=1, id=6)
    nova.add_server(4, cell=None, id=6, state="error")
    report = _import(config, nova)
    assert report["differences"] == []
    with cloud_on(database_url) as cloud:
        shown = cloud.admin.get("/servers/detail?all_tenants=1").json["servers"]
        named = {one["id"]: one["OS-EXT-SRV-ATTR:instance_name"] for one in shown}
        assert named[uuid(1)] == "instance-00000005"
        assert sorted(named.values()) == [f"instance-{number:08x}" for number in (5, 6, 7, 8)]
        made = cloud.admin.post("/os-keypairs", {"keypair": {"name": "new", "type": "ssh", **_KEY}})
        assert made.status == 201, made.text
        assert {one["host"] for one in cloud.admin.get("/os-services").json["services"]} == {"north", "south"}
    assert _count(database_url, nodes) == 2


_KEY = {"public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJxyyI2gDW5NmtZ7lVXmC7cTOIBy9wE0DAbxNJzYyOTT a@b"}


def test_new_rows_are_numbered_after_those_that_came(nova: NovaRows, config: Path, database_url: str) -> None:
    nova.api.execute("UPDATE flavors SET id = 41")
    assert _import(config, nova)["counts"]["flavors"] == 1
    with cloud_on(database_url) as cloud:
        body = {"flavor": {"name": "new", "id": "new", "vcpus": 1, "ram": 64, "disk": 1}}
        assert cloud.admin.post("/flavors", body).status == 200
        with cloud.database.read() as connection:
            numbers = dict(connection.execute(sa.select(flavors.c.flavorid, flavors.c.id)).all())
    assert numbers == {"tiny": 41, "new": 42}


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("busy", {"task_state": "powering-off"}),
        ("state-building", {"state": "building"}),
        ("state-resized", {"state": "resized"}),
        ("state-rescued", {"state": "rescued"}),
        ("state-soft-delete", {"state": "soft-delete"}),
        ("state", {"state": "dreaming"}),
    ],
)
def test_a_server_that_nova_has_to_finish_stops_the_whole(
    nova: NovaRows, tmp_path: Path, sqlite_url: str, kind: str, columns: dict[str, Any]
) -> None:
    nova.add_server(1)
    nova.add_server(2, **columns)
    config = moorage.configure(tmp_path / "moorage", sqlite_url)
    report = _import(config, nova, "--leave-out")
    (remainder,) = report["remainders"]
    assert (remainder["kind"], remainder["weight"]) == (kind, "blocking")
    assert remainder["examples"] == [f"{uuid(2)} (server-2)"]
    assert (report["dry_run"], report["written"]) == (False, False)
    words = ["--config-file", str(config), "compute", "import", "--api-database", nova.api.url]
    told = CliRunner().invoke(commands, words)
    assert f"nothing was written, because of: {kind}" in str(told.exception)
    assert "imported" not in told.stdout
    assert _count(sqlite_url, flavors) == 0


def test_other_things_that_nova_has_to_finish(nova: NovaRows, tmp_path: Path, sqlite_url: str) -> None:
    moving = nova.add_server(1)
    nova.cells[0].insert(
        "migrations", uuid=uuid(700), instance_uuid=moving, status="running", hidden=False, deleted=0
    )
    nova.api.insert("build_requests", instance_uuid=uuid(9), project_id="project", instance="{}")
    nova.cells[1].execute("UPDATE services SET host = 'north'")
    report = _import(moorage.configure(tmp_path / "moorage", sqlite_url), nova, "--leave-out")
    assert _kinds(report) == {"moving": 1, "unborn": 1, "hosts": 1}
    assert _count(sqlite_url, services) == 0


def test_what_can_not_come_over_stays_behind_only_on_purpose(
    nova: NovaRows, config: Path, database_url: str
) -> None:
    nova.add_server(1)
    with_volume, homeless = nova.add_server(2), nova.add_server(3, host="east", node="east")
    flavorless, deleted = nova.add_server(4), nova.add_server(5)
    cell = nova.cells[0]
    cell.insert(
        "block_device_mapping",
        instance_uuid=with_volume,
        destination_type="volume",
        volume_id=uuid(600),
        deleted=0,
    )
    cell.insert(
        "block_device_mapping",
        instance_uuid=uuid(1),
        destination_type="local",
        source_type="image",
        deleted=0,
    )
    cell.execute("UPDATE instance_extra SET flavor = NULL WHERE instance_uuid = :of", of=flavorless)
    cell.execute("UPDATE instances SET deleted = id WHERE uuid = :of", of=deleted)
    nova.api.insert(
        "flavors",
        id=7,
        flavorid="old",
        name="old",
        vcpus=1,
        memory_mb=1,
        swap=0,
        disabled=True,
    )
    refused = _import(config, nova)
    listed = {"volumes": 1, "homeless": 1, "flavorless": 1, "disabled-flavors": 1}
    assert _kinds(refused) == {**listed, "deleted": 1}
    assert refused["counts"]["servers"] == 1
    assert _count(database_url, servers) == 0
    report = _import(config, nova, "--leave-out")
    assert (report["written"], report["differences"]) == (True, [])
    with cloud_on(database_url) as cloud:
        shown = cloud.admin.get("/servers/detail?all_tenants=1").json["servers"]
        assert [one["id"] for one in shown] == [uuid(1)]
        assert shown[0]["created"] == "2026-01-02T03:04:05Z"
        assert homeless not in str(shown)
        with cloud.database.read() as connection:
            assert connection.execute(sa.select(quota_usage)).all() == [("project", 1, 1, 512)]


def test_a_dry_run_writes_nothing(nova: NovaRows, config: Path, database_url: str) -> None:
    nova.add_server(1)
    assert _import(config, nova, "--dry-run")["counts"]["servers"] == 1
    assert _count(database_url, flavors) == _count(database_url, servers) == 0


def test_a_cloud_that_has_something_takes_nothing_over(
    nova: NovaRows, config: Path, database_url: str
) -> None:
    with cloud_on(database_url) as cloud:
        body = {"flavor": {"name": "own", "id": "own", "vcpus": 1, "ram": 64, "disk": 1}}
        assert cloud.admin.post("/flavors", body).status == 200
    assert "1 flavors" in str(_import(config, nova))
    assert _count(database_url, flavors) == 1


def test_a_killed_import_leaves_nothing_and_the_next_one_brings_all(
    nova: NovaRows, tmp_path: Path, postgres_url: str
) -> None:
    """It is held up where it writes servers, and killed there."""
    nova.add_server(1)
    config = moorage.configure(tmp_path / "moorage", postgres_url)
    holder = sa.create_engine(postgres_url, poolclass=sa.NullPool)
    with holder.connect() as connection:
        connection.execute(sa.text("LOCK TABLE servers IN EXCLUSIVE MODE"))
        command = [
            str(moorage.PROGRAMS / "moorage-manage"),
            "--config-file",
            str(config),
            "compute",
            "import",
        ]
        with subprocess.Popen([*command, "--api-database", nova.api.url, "--json"]) as running:
            wait_until(lambda: _is_held_up(holder), "the import to write servers", 60)
            running.kill()
    wait_until(lambda: not _is_held_up(holder), "the import's end", 60)
    assert _count(postgres_url, flavors) == _count(postgres_url, servers) == 0
    report = _import(config, nova)
    assert report["differences"] == []
    assert _count(postgres_url, servers) == 1


def _is_held_up(holder: sa.Engine) -> bool:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'relation'"
    )
    with holder.connect() as connection:
        return bool(connection.execute(sa.text(waiting)).scalar_one())


def test_a_comparison_tells_what_was_changed_since(nova: NovaRows, config: Path, database_url: str) -> None:
    nova.add_server(1)
    assert _import(config, nova)["differences"] == []
    same = _compare(config, nova, "--json")
    assert same.exit_code == 0, same.output
    assert json.loads(same.stdout)["equal"]
    assert json.loads(same.stdout)["compared"]["servers"] == 1
    connected = engine.connect(database_url)
    with Database(connected).write() as connection:
        connection.execute(sa.update(servers).values(hostname="another"))
        connection.execute(sa.delete(flavors))
    connected.dispose()
    changed = _compare(config, nova, "--json")
    assert changed.exit_code == 7, changed.exception
    found = json.loads(changed.stdout)["differences"]
    assert [(one["table"], one["missing"], one["columns"]) for one in found] == [
        *(("flavors", True, []), ("servers", True, ["hostname"]), ("servers", False, ["hostname"])),
    ]
    assert uuid(1) in found[1]["row"]
    told = _compare(config, nova)
    assert told.exit_code == 7
    assert "flavors: 1 compared, 1 differ\n  flavorid tiny, name m1.tiny: only in Nova" in told.stdout
    assert told.stdout.count("hostname differs") == 1
    assert "both sides are the same" not in told.stdout


def _compare(config: Path, nova: NovaRows, *options: str) -> Result:
    words = ["--config-file", str(config), "compute", "compare", "--api-database", nova.api.url]
    return CliRunner().invoke(commands, [*words, *options])


def test_cells_may_be_told_in_terms_of_novas_own_configuration(
    nova: NovaRows, tmp_path: Path, sqlite_url: str
) -> None:
    nova.add_server(1)
    cell = nova.cells[0].url
    nova.api.execute(
        "UPDATE cell_mappings SET database_connection = '{scheme}://{username}@{hostname}:{port}/{path}' "
        "WHERE name = 'cell1'"
    )
    config = moorage.configure(tmp_path / "moorage", sqlite_url)
    assert "is a template" in str(_import(config, nova))
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[DEFAULT]\ndebug\n[database]\nconnection = {cell}\n")
    assert _import(config, nova, "--nova-conf", str(conf)) is not None
    conf.write_text(f"[api_database]\nconnection={nova.api.url}\n[database]\nconnection={cell}\n")
    assert _import(config, nova, "--nova-conf", str(conf))["counts"]["servers"] == 1


@pytest.mark.parametrize("url", ["sqlite:////nowhere/at/all", "mongodb://localhost/nova"])
def test_a_database_that_is_none_of_novas_is_refused(
    nova: NovaRows, tmp_path: Path, sqlite_url: str, url: str
) -> None:
    config = moorage.configure(tmp_path / "moorage", sqlite_url)
    ran = CliRunner().invoke(
        commands, ["--config-file", str(config), "compute", "import", "--api-database", url]
    )
    assert ran.exit_code == 1
    ours = CliRunner().invoke(
        commands, ["--config-file", str(config), "compute", "import", "--api-database", sqlite_url]
    )
    assert "not a database of Nova's API" in str(ours.exception) or "revision" in str(ours.exception)
