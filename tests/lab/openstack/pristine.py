"""The schemas of Neutron and Glance, each as its service keeps it: on PostgreSQL, and in a file of SQLite."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.lab.openstack.environment import HERE, OPENSTACK
from tests.lab.pristine import KIND, dump, kept, load, new_database, run
from tests.support import postgres
from tests.support.postgres import Postgres
from tests.support.profiles import ini

_NEUTRON_SCHEMA = HERE / "neutron_schema.py"


def neutron_database(server: Postgres) -> str:
    """The URL of a new one."""
    return load(server, "neutron", pristine_schemas() / "neutron.sql")


def glance_database(file: Path) -> str:
    return sqlite_url(Path(shutil.copy(pristine_schemas() / "glance.sqlite", file)))


def sqlite_url(file: Path) -> str:
    return f"sqlite:///{file}"


def pristine_schemas() -> Path:
    """The directory of `neutron.sql` and `glance.sqlite`."""
    return kept(OPENSTACK, "pristine", _make, Path(__file__), _NEUTRON_SCHEMA)


def _make(programs: Path, schemas: Path) -> None:
    config = schemas / "glance.conf"
    config.write_text(ini({"database": {"connection": sqlite_url(schemas / "glance.sqlite")}}))
    run(programs / "glance-manage", "--config-file", config, "db_sync")
    with postgres.start(KIND) as server:
        run(programs / "python", _NEUTRON_SCHEMA, new_database(server, "neutron"))
        dump(server, "neutron", schemas / "neutron.sql")
