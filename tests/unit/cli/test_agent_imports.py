"""An agent has no database: it starts without the libraries that would be a third of its start."""

from __future__ import annotations

import subprocess
import sys

LIBRARIES = {"sqlalchemy", "psycopg", "alembic"}


def test_an_agent_starts_without_the_libraries_of_a_database() -> None:
    told = "import sys, moorage.cli.processes.agent; print(*{name.partition('.')[0] for name in sys.modules})"
    imported = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout
    assert "moorage" in imported.split()
    assert LIBRARIES.isdisjoint(imported.split())
