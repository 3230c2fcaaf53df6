"""Nova's databases with nothing in them but its two cells, made once and kept as dumps.

Creating the schemas takes Nova a minute; loading a dump takes a second. The addresses in the cells are
templates that each Nova fills from its own configuration, so that the dumps fit any server.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.support import postgres
from tests.support.environments import Environment
from tests.support.postgres import Postgres
from tests.support.profiles import ini

HERE = Path(__file__).resolve().parent
NOVA = Environment("nova", HERE / "requirements.txt", HERE / "constraints.txt")
KIND = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "timezone": "UTC",
    "default_transaction_isolation": "read committed",
}
"""Nobody tests here what Nova makes of its own database."""

_CELL = "{scheme}://{username}@{hostname}:{port}/{path}"
_BUS = "{scheme}://{username}:{password}@{hostname}:{port}/"
_COMMANDS = (
    ("api_db", "sync"),
    ("db", "sync", "--local_cell"),
    ("cell_v2", "map_cell0", "--database_connection", f"{_CELL}_cell0"),
    ("cell_v2", "create_cell", "--name", "cell1", "--database_connection", _CELL, "--transport-url", _BUS),
)


def new_databases(server: Postgres, name: str) -> dict[str, str]:
    """The URLs of a new Nova's two; a third is beside them, for servers that never had a host."""
    dumps = pristine_dumps()
    urls = {}
    for database, dump in ((f"{name}_api", "api"), (name, "cell"), (f"{name}_cell0", "cell")):
        urls[database] = _driven(server.create_kinder_database(database))
        _run(_program(server, "psql"), "-q", "-f", dumps / f"{dump}.sql", *_address(server, database))
    return {"api": urls[f"{name}_api"], "cell": urls[name]}


def pristine_dumps() -> Path:
    """The directory of `api.sql` and `cell.sql`. New versions, or a change of this file, make new ones."""
    programs = NOVA.bin()
    kept = NOVA.directory / f"pristine-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]}"
    with NOVA.locked():
        if not kept.exists():
            unfinished = kept.with_name(f"{kept.name}.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            _make(programs, unfinished)
            unfinished.rename(kept)
    return kept


def _make(programs: Path, dumps: Path) -> None:
    with postgres.start(KIND) as server, tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "nova.conf"
        api, cell = (_driven(server.create_kinder_database(name)) for name in ("api", "cell"))
        config.write_text(
            ini(
                {
                    "DEFAULT": {"transport_url": "rabbit://guest:guest@127.0.0.1:1/"},
                    "api_database": {"connection": api},
                    "database": {"connection": cell},
                }
            )
        )
        for command in _COMMANDS:
            _run(programs / "nova-manage", "--config-file", config, *command)
        for name in ("api", "cell"):
            dump = ("--no-owner", "--file", dumps / f"{name}.sql")
            _run(_program(server, "pg_dump"), *dump, *_address(server, name))


def _driven(url: str) -> str:
    return url.replace("+psycopg:", "+psycopg2:")


def _program(server: Postgres, name: str) -> Path:
    return Path(server.command[0]).with_name(name)


def _address(server: Postgres, database: str) -> tuple[str, ...]:
    return ("-h", "127.0.0.1", "-p", str(server.port), "-U", postgres.ROLE, "-d", database)


def _run(*command: str | Path) -> None:
    ran = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    if ran.returncode:
        raise RuntimeError(f"{command} failed:\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}")
