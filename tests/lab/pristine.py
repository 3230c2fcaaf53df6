"""What a neighbour's commands make of nothing, such as its schema: made once, kept beside its programs, and
then copied. To make it takes some of them a good part of a minute; a copy takes no time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.support import postgres
from tests.support.environments import Environment
from tests.support.postgres import Postgres

KIND = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",
}
"""Nobody tests here what a neighbour makes of its own database."""


def kept(environment: Environment, name: str, make: Callable[[Path, Path], None], *recipe: Path) -> Path:
    """The directory that `make` has filled, given that of the programs and its own. New programs, or a change
    of a file of the recipe, make a new one."""
    programs = environment.bin()
    how = b"".join(path.read_bytes() for path in (Path(__file__), *recipe))
    state = environment.directory / f"{name}-{hashlib.sha256(how).hexdigest()[:12]}"
    with environment.locked():
        if not state.exists():
            unfinished = state.with_name(f"{state.name}.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            make(programs, unfinished)
            unfinished.rename(state)
    return state


def run(*command: str | Path) -> None:
    ran = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    if ran.returncode:
        raise RuntimeError(f"{command} failed:\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}")


def new_database(server: Postgres, name: str) -> str:
    """The URL of an empty one, for a neighbour: all of them use psycopg2."""
    return server.create_kinder_database(name).replace("+psycopg:", "+psycopg2:")


def dump(server: Postgres, database: str, file: Path) -> None:
    run(_program(server, "pg_dump"), "--no-owner", "--file", file, *_address(server, database))


def load(server: Postgres, database: str, file: Path) -> str:
    """The URL of a new database with what was dumped."""
    url = new_database(server, database)
    run(_program(server, "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", file, *_address(server, database))
    return url


def _program(server: Postgres, name: str) -> Path:
    return Path(server.command[0]).with_name(name)


def _address(server: Postgres, database: str) -> tuple[str, ...]:
    return ("-h", "127.0.0.1", "-p", str(server.port), "-U", postgres.ROLE, "-d", database)
