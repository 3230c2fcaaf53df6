"""A Nova whose databases are MariaDB's, as most have it: its cloud comes over as one from PostgreSQL does."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymysql
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from moorage.cli.manage.manage import commands
from tests.lab.nova.pristine import NOVA
from tests.lab.nova.rows import Database, NovaRows, uuid
from tests.support import mariadb, moorage
from tests.support.compute import cloud_on
from tests.support.debian import Unavailable
from tests.support.profiles import ini

pytestmark = pytest.mark.timeout(600)
_QUOTED = {"init_command": "SET sql_mode = 'ANSI_QUOTES'"}
"""Names in statements are quoted as the standard has it."""


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NovaRows]:
    directory = tmp_path_factory.mktemp("nova")
    try:
        with mariadb.running() as server:
            urls = {name: server.create_database(name) for name in ("api", "cell", "cell0")}
            for cell, commands in (("cell", ("api_db", "db")), ("cell0", ("db",))):
                _sync(directory, urls["api"], urls[cell], *commands)
            made = {name: Database(url, _engine(url)) for name, url in urls.items()}
            rows = NovaRows(made["api"], [made["cell"]], made["cell0"], ("north",))
            yield rows
            rows.close()
    except Unavailable as reason:
        pytest.skip(str(reason))


def _engine(url: str) -> sa.Engine:
    return sa.create_engine(url, poolclass=sa.NullPool, connect_args=_QUOTED)


def _sync(directory: Path, api: str, cell: str, *databases: str) -> None:
    """Nova's environment has no driver for it: ours has, and it is pure Python."""
    driver = directory / "driver"
    driver.mkdir(exist_ok=True)
    if not (driver / "pymysql").exists():
        (driver / "pymysql").symlink_to(Path(pymysql.__file__).parent)
    config = directory / "nova.conf"
    bus = {"transport_url": "rabbit://guest:guest@127.0.0.1:1/"}
    told = {"DEFAULT": bus, "api_database": {"connection": api}, "database": {"connection": cell}}
    config.write_text(ini(told))
    for database in databases:
        local = ["--local_cell"] if database == "db" else []
        command = [str(NOVA.bin() / "nova-manage"), "--config-file", str(config), database, "sync", *local]
        ran = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(driver)},
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_cloud_comes_over_from_mariadb(databases: NovaRows, tmp_path: Path, database_url: str) -> None:
    databases.start_anew()
    databases.add_server(1, id=5, locked=True, locked_by="admin")
    databases.add_server(2, cell=None, id=5, state="error")
    databases.cells[0].execute("UPDATE services SET disabled = true, disabled_reason = 'broken'")
    config = moorage.configure(tmp_path / "moorage", database_url)
    report = _run(config, databases, "import")
    assert (report["written"], report["differences"]) == (True, [])
    assert _run(config, databases, "compare")["equal"]
    with cloud_on(database_url) as cloud:
        shown = {one["id"]: one for one in cloud.admin.get("/servers/detail?all_tenants=1").json["servers"]}
        assert shown[uuid(1)]["created"] == "2026-01-02T03:04:05Z"
        assert [shown[uuid(number)]["locked"] for number in (1, 2)] == [True, False]
        (service,) = cloud.admin.get("/os-services").json["services"]
        assert (service["host"], service["status"], service["disabled_reason"]) == (
            *("north", "disabled"),
            "broken",
        )
        (flavor,) = cloud.admin.get("/flavors/detail").json["flavors"]
        assert flavor["os-flavor-access:is_public"] is True


def _run(config: Path, nova: NovaRows, command: str) -> Any:
    words = ["--config-file", str(config), "compute", command, "--api-database", nova.api.url, "--json"]
    ran = CliRunner().invoke(commands, words)
    assert ran.exit_code == 0, ran.output + str(ran.exception)
    return json.loads(ran.stdout)
