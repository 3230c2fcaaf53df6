"""Ironic's database with nothing in it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.lab.pristine import KIND, dump, kept, load, new_database, run
from tests.support import postgres
from tests.support.environments import Environment
from tests.support.postgres import Postgres
from tests.support.profiles import ini

HERE = Path(__file__).resolve().parent
IRONIC = Environment("ironic", HERE / "requirements.txt", HERE / "constraints.txt")


def ironic_database(server: Postgres) -> str:
    """The URL of a new one."""
    return load(server, "ironic", pristine_dump() / "ironic.sql")


def pristine_dump() -> Path:
    """The directory of `ironic.sql`."""
    return kept(IRONIC, "pristine", _make, Path(__file__))


def _make(programs: Path, dumps: Path) -> None:
    with postgres.start(KIND) as server, tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "ironic.conf"
        config.write_text(ini({"database": {"connection": new_database(server, "ironic")}}))
        run(programs / "ironic-dbsync", "--config-file", config, "create_schema")
        dump(server, "ironic", dumps / "ironic.sql")
