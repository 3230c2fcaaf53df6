"""A MariaDB of Debian's package, with its own defaults, on a socket and in a directory of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_plus

import pymysql

from tests.support import debian
from tests.support.debian import Unavailable
from tests.support.processes import wait_until

SERVER = debian.program("mariadb-server")
INSTALL = "mariadb-install-db"


@dataclass(frozen=True)
class MariaDb:
    socket: Path

    def create_database(self, name: str) -> str:
        """Its URL."""
        with pymysql.connect(unix_socket=str(self.socket), user="root") as connection:
            connection.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb3")
        return f"mysql+pymysql://root@localhost/{name}?unix_socket={quote_plus(str(self.socket))}"

    def answers(self) -> bool:
        try:
            pymysql.connect(unix_socket=str(self.socket), user="root").close()
        except pymysql.Error:
            return False
        return True


@contextmanager
def running() -> Iterator[MariaDb]:
    """Raises Unavailable where it can't be."""
    debian.install("mariadb-server")
    if os.geteuid() != 0:
        raise Unavailable("only root makes a database of Debian's MariaDB")
    home = Path(tempfile.mkdtemp(prefix="moorage-mariadb-"))
    home.chmod(0o755)
    data = home / "data"
    common = ["--no-defaults", f"--datadir={data}", "--user=mysql"]
    try:
        shutil.chown(home, "mysql", "mysql")
        set_up = [INSTALL, *common, "--auth-root-authentication-method=normal", "--skip-test-db"]
        ran = subprocess.run(set_up, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"{INSTALL}: {ran.stdout}{ran.stderr}")
        server = MariaDb(home / "socket")
        command = [str(SERVER), *common, f"--socket={server.socket}", "--skip-networking"]
        with (home / "log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                wait_until(server.answers, "MariaDB")
                yield server
            finally:
                process.terminate()
                process.wait(30)
    finally:
        shutil.rmtree(home, ignore_errors=True)
