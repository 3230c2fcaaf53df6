"""A PostgreSQL as Debian's package makes one: its own defaults, on a port and in a directory of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import debian
from tests.support.debian import Unavailable
from tests.support.processes import free_port

PROGRAMS = Path("/usr/lib/postgresql")
CREATE = debian.program("postgresql")
CLUSTER = "moorage-test"


@dataclass(frozen=True)
class DebianPostgres:
    port: int
    version: str
    environment: dict[str, str]
    """Of who talks to it on its machine."""

    def ask(self, statement: str) -> str:
        """As the administrator."""
        command = ["runuser", "-u", "postgres", "--", "psql", "-qAt", "-c", statement]
        environment = {**os.environ, **self.environment}
        ran = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=True)
        return ran.stdout.strip()


@contextmanager
def running() -> Iterator[DebianPostgres]:
    """Raises Unavailable where it can't be: clusters are made and started by root."""
    debian.install("postgresql")
    if os.geteuid() != 0:
        raise Unavailable("only root makes a cluster of Debian's PostgreSQL")
    version = max((path.name for path in PROGRAMS.iterdir()), key=float)
    home = Path(tempfile.mkdtemp(prefix="moorage-debian-postgres-"))
    home.chmod(0o755)
    port = free_port()
    environment = {"PG_CLUSTER_CONF_ROOT": str(home / "etc"), "PGPORT": str(port)}

    def run(*command: str | Path) -> None:
        ran = subprocess.run(
            [str(part) for part in command],
            env={**os.environ, **environment},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{command[0]}: {ran.stdout}{ran.stderr}")

    try:
        run(
            CREATE,
            "--port",
            str(port),
            "--datadir",
            home / "data",
            "--logfile",
            home / "log",
            version,
            CLUSTER,
        )
        run("pg_ctlcluster", version, CLUSTER, "start")
        try:
            yield DebianPostgres(port, version, environment)
        finally:
            run("pg_ctlcluster", "--mode", "immediate", version, CLUSTER, "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)
