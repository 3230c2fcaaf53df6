"""`moorage-manage db` and `moorage-status upgrade check`, run as an operator runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

PROGRAMS = Path(sys.executable).parent


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(PROGRAMS / program), *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def config_file(tmp_path: Path, empty_database_url: str) -> str:
    path = tmp_path / "moorage.conf"
    path.write_text(f"[database]\nconnection = {empty_database_url}\n")
    return str(path)


def test_sync_makes_an_empty_database_current_and_can_be_repeated(config_file: str) -> None:
    before = json.loads(run("moorage-manage", "--config-file", config_file, "db", "version", "--json").stdout)
    assert before["version"] is None
    assert before["current"] is False
    for _ in range(2):
        assert run("moorage-manage", "--config-file", config_file, "db", "sync").returncode == 0
    after = json.loads(run("moorage-manage", "--config-file", config_file, "db", "version", "--json").stdout)
    assert after["version"] == before["needed"]
    assert after["current"] is True


def test_the_upgrade_check_fails_until_the_schema_is_current(config_file: str) -> None:
    assert run("moorage-status", "--config-file", config_file, "upgrade", "check").returncode == 2
    run("moorage-manage", "--config-file", config_file, "db", "sync")
    assert run("moorage-status", "--config-file", config_file, "upgrade", "check").returncode == 0


def test_the_upgrade_check_finds_a_usage_counter_that_is_wrong(
    config_file: str, empty_database_url: str
) -> None:
    run("moorage-manage", "--config-file", config_file, "db", "sync")
    engine = create_engine(empty_database_url)
    with engine.begin() as connection:
        moment = "2026-01-01 00:00:00.000000"
        connection.execute(text(f"INSERT INTO resource_classes VALUES (1, 'CUSTOM_X', '{moment}')"))
        connection.execute(
            text(
                "INSERT INTO providers (id, uuid, name, generation, root_id, updated_at)"
                f" VALUES (1, '00000000-0000-0000-0000-000000000001', 'p', 0, 1, '{moment}')"
            )
        )
        connection.execute(text(f"INSERT INTO inventories VALUES (1, 1, 8, 0, 1, 8, 1, 1.0, 3, '{moment}')"))
    engine.dispose()
    check = run("moorage-status", "--config-file", config_file, "upgrade", "check", "--json")
    assert check.returncode == 2
    assert any("1 inventories" in (found["details"] or "") for found in json.loads(check.stdout)["checks"])


@pytest.mark.parametrize(
    ("program", "arguments"), [("moorage-manage", ("db", "sync")), ("moorage-status", ("upgrade", "check"))]
)
def test_a_missing_configuration_file_is_told_in_a_sentence(program: str, arguments: tuple[str, ...]) -> None:
    ran = run(program, "--config-file", "/nonexistent.conf", *arguments)
    assert ran.returncode not in (0, 2)
    assert "nonexistent.conf" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_purge_counts_first_and_wants_a_time_that_makes_sense(config_file: str) -> None:
    manage = ("moorage-manage", "--config-file", config_file, "db")
    run(*manage, "sync")
    counted = json.loads(run(*manage, "purge", "--before", "90d", "--dry-run", "--json").stdout)
    assert counted["dry_run"] is True
    assert set(counted["rows"].values()) == {0}
    assert run(*manage, "purge", "--before", "2026-08-01").stdout.startswith("servers: 0\n")
    refused = run(*manage, "purge", "--before", "long ago")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("error: --before is an age")


def test_data_migrations_say_what_is_left(config_file: str) -> None:
    """This release has none; a schema that is missing is told first."""
    manage = ("moorage-manage", "--config-file", config_file, "db")
    refused = run(*manage, "online-data-migrations")
    assert (refused.returncode, "run `moorage-manage db sync`" in refused.stderr) == (1, True)
    run(*manage, "sync")
    told = run(*manage, "online-data-migrations")
    assert (told.returncode, told.stdout) == (0, "nothing to do: this release has no data migrations\n")
    assert json.loads(run(*manage, "online-data-migrations", "--json").stdout) == []
