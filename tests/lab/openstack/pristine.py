"""The schemas of Neutron and Glance, for new databases of theirs."""

from __future__ import annotations

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


def glance_database(server: Postgres) -> str:
    """Not in a file of SQLite, which turns away whoever writes beside another."""
    return load(server, "glance", pristine_schemas() / "glance.sql")


def pristine_schemas() -> Path:
    """The directory of `neutron.sql` and `glance.sql`."""
    return kept(OPENSTACK, "pristine", _make, Path(__file__), _NEUTRON_SCHEMA)


def _make(programs: Path, schemas: Path) -> None:
    config = schemas / "glance.conf"
    with postgres.start(KIND) as server:
        config.write_text(ini({"database": {"connection": new_database(server, "glance")}}))
        run(programs / "glance-manage", "--config-file", config, "db_sync")
        dump(server, "glance", schemas / "glance.sql")
        run(programs / "python", _NEUTRON_SCHEMA, new_database(server, "neutron"))
        dump(server, "neutron", schemas / "neutron.sql")
