"""Databases, journals and credentials are for us alone, whatever the umask, and after an older release."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.agent.journal import Journal
from moorage.core import private
from moorage.db import engine, migrate
from tests.support import moorage, profiles
from tests.support.processes import Command, free_port, start_service

MOORAGE = Path(sys.executable).parent / "moorage"
UMASKS = (0o000, 0o022, 0o777)


def modes(directory: Path) -> dict[str, int]:
    """Of all that is in it, and of itself."""
    found = {"": directory, **{str(path.relative_to(directory)): path for path in directory.rglob("*")}}
    return {name: stat.S_IMODE(path.stat().st_mode) for name, path in found.items()}


def wrong(directory: Path) -> dict[str, str]:
    return {
        name: oct(mode)
        for name, mode in modes(directory).items()
        if mode != (0o700 if (directory / name).is_dir() else 0o600)
    }


def up(data: Path, umask: int = 0o022) -> None:
    """Run it until it serves, and look while it does."""
    ports = [str(free_port()) for _ in range(2)]
    command: Command = [
        *("sh", "-c", f'umask {umask:03o}; exec "$@"', "sh"),
        *(MOORAGE, "up", "--data", data, "--placement-port", ports[0], "--compute-port", ports[1]),
        *("--hosts", "1"),
    ]
    with start_service(command, int(ports[0]), data.parent / "up.log"):
        assert {"moorage.sqlite", "moorage.sqlite-wal", "password", "lock"} <= modes(data).keys()
        assert wrong(data) == {}


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_what_moorage_up_makes(tmp_path: Path, umask: int) -> None:
    up(tmp_path / "data", umask)


def test_what_an_older_release_has_left_wide_is_tightened(tmp_path: Path) -> None:
    data = tmp_path / "data"
    up(data)
    for path in (data, *data.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    up(data)


def test_a_directory_that_others_use_too_stays_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "shared"
    data.mkdir()
    data.chmod(0o755)
    (data / "notes").write_text("somebody's")
    (data / "notes").chmod(0o644)
    ports = [str(free_port()) for _ in range(2)]
    command: Command = [
        MOORAGE,
        "up",
        "--data",
        data,
        "--placement-port",
        ports[0],
        "--compute-port",
        ports[1],
    ]
    with start_service(command, int(ports[0]), tmp_path / "up.log"):
        assert wrong(data) == {"": "0o755", "notes": "0o644"}


@pytest.mark.parametrize("umask", UMASKS)
def test_a_database_that_is_synced(tmp_path: Path, umask: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    before = os.umask(umask)
    try:
        connected = engine.connect(f"sqlite:///{data / 'moorage.sqlite'}")
        migrate.sync(connected)
        with connected.connect() as connection:  # so that its journals are there
            connection.exec_driver_sql("SELECT count(*) FROM servers")
            assert {"moorage.sqlite", "moorage.sqlite-wal", "moorage.sqlite-shm"} < modes(data).keys()
            assert wrong(data) == {}
        connected.dispose()
    finally:
        os.umask(before)


def test_the_command_that_syncs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o755)
    config = tmp_path / "moorage.conf"
    config.write_text(profiles.ini({"database": {"connection": f"sqlite:///{data / 'moorage.sqlite'}"}}))
    moorage.sync_database(config)
    assert wrong(data) == {}


@pytest.mark.parametrize("umask", UMASKS)
def test_an_agents_journal(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        journal = Journal(tmp_path / "agent" / "journal.sqlite")
        assert "journal.sqlite-wal" in modes(tmp_path / "agent")
    finally:
        os.umask(before)
    assert wrong(tmp_path / "agent") == {}
    del journal


def test_locks_outlive_the_look_at_a_database(tmp_path: Path) -> None:
    """Closing a file drops all locks that a process has on it, so it may not be opened for that."""
    path = tmp_path / "locked.sqlite"
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("CREATE TABLE t (n INTEGER)")
    holder.execute("BEGIN IMMEDIATE")
    path.chmod(0o644)
    private.database(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    script = (
        "import sqlite3, sys\n"
        "try: sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')\n"
        "except sqlite3.OperationalError as error: print(error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    assert "locked" in told.stdout
    holder.close()


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path = tmp_path / "theirs.sqlite"
    path.touch()
    path.chmod(0o644)
    os.chown(path, 65534, 65534)
    private.database(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
