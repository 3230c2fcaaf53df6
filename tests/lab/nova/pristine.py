"""Nova's databases with nothing in them but its two cells.

The addresses in the cells are templates that each Nova fills from its own configuration, so that the dumps
fit any server.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.lab.pristine import KIND, dump, kept, load, new_database, run
from tests.support import postgres
from tests.support.environments import Environment
from tests.support.postgres import Postgres
from tests.support.profiles import ini

HERE = Path(__file__).resolve().parent
NOVA = Environment("nova", HERE / "requirements.txt", HERE / "constraints.txt")

_CELL = "{scheme}://{username}@{hostname}:{port}/{path}"
_BUS = "{scheme}://{username}:{password}@{hostname}:{port}/{path}"
_COMMANDS = (
    ("api_db", "sync"),
    ("db", "sync", "--local_cell"),
    ("cell_v2", "map_cell0", "--database_connection", f"{_CELL}_cell0"),
    ("cell_v2", "create_cell", "--name", "cell1", "--database_connection", _CELL, "--transport-url", _BUS),
)


def new_databases(server: Postgres, name: str) -> dict[str, str]:
    """The URLs of a new Nova's two; a third is beside them, for servers that never had a host."""
    dumps = pristine_dumps()
    load(server, f"{name}_cell0", dumps / "cell.sql")
    return {
        "api": load(server, f"{name}_api", dumps / "api.sql"),
        "cell": load(server, name, dumps / "cell.sql"),
    }


def pristine_dumps() -> Path:
    """The directory of `api.sql` and `cell.sql`."""
    return kept(NOVA, "pristine", _make, Path(__file__))


def _make(programs: Path, dumps: Path) -> None:
    with postgres.start(KIND) as server, tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "nova.conf"
        api, cell = (new_database(server, name) for name in ("api", "cell"))
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
            run(programs / "nova-manage", "--config-file", config, *command)
        for name in ("api", "cell"):
            dump(server, name, dumps / f"{name}.sql")
