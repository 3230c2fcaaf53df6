"""The test's side of the stage server: fresh databases, written configurations, a port to talk to."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from moorage.db import engine, migrate
from tests.conformance.reference_env import reference_bin
from tests.support import reference
from tests.support.postgres import Postgres
from tests.support.profiles import Profile, Settings, ini, policy_settings, policy_text
from tests.support.recycled_databases import RecycledDatabases

ROOT = Path(__file__).resolve().parents[2]
_serial = itertools.count(1)


class FreshDatabases(Protocol):
    """Where a new, synced, empty database comes from; one at a time."""

    def next(self) -> str: ...


class SqliteCopies:
    """A synced file is kept as the template; a copy is a new database."""

    def __init__(self, template: Path) -> None:
        self.template = template
        self.latest: Path | None = None

    def next(self) -> str:
        self._remove_latest()
        self.latest = self.template.with_name(f"fresh-{next(_serial)}.sqlite")
        shutil.copy(self.template, self.latest)
        return f"sqlite:///{self.latest}"

    def _remove_latest(self) -> None:
        if self.latest is not None:
            for suffix in ("", "-wal", "-shm", "-journal"):
                Path(f"{self.latest}{suffix}").unlink(missing_ok=True)


class PostgresCopies:
    """A synced database serves as the template of the next ones."""

    def __init__(self, server: Postgres, template: str) -> None:
        self.server = server
        self.copies = RecycledDatabases(server, template)
        self.latest: str | None = None

    def next(self) -> str:
        if self.latest is not None:
            self.copies.give_back(self.latest)
        self.latest = self.copies.take()
        return self.server.database_url(self.latest)


class Stage:
    """One application at a time, either ours or the reference, each on a fresh database."""

    def __init__(self, kind: str, python: Path, directory: Path, settings: Callable[[str], Settings]) -> None:
        self.directory = directory
        self.settings = settings
        self.databases: FreshDatabases | None = None
        self.log = directory / "stage.log"
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", "tests.support.stage_server", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("ab"),
            cwd=ROOT,
            text=True,
        )

    def fresh(self, profile: Profile = Profile.DEFAULT, extra: Settings | None = None) -> int:
        """Put up a new application on a new database; returns its port."""
        assert self.databases is not None
        return self.put_up(self.databases.next(), profile, extra)

    def put_up(self, url: str, profile: Profile = Profile.DEFAULT, extra: Settings | None = None) -> int:
        policy = self.directory / "policy.yaml"
        policy.write_text(policy_text(profile, rule_names() if profile is Profile.OPEN_POLICY else []))
        config = self.directory / "placement.conf"
        config.write_text(
            ini({**self.settings(url), **policy_settings(profile, str(policy)), **(extra or {})})
        )
        return self._tell(str(config))["port"]

    def take_down(self) -> None:
        """End the application, so that nobody uses its database."""
        self._tell("")

    def _tell(self, line: str) -> dict[str, int]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the stage server ended"}')
        if "error" in answer:
            raise RuntimeError(f"{answer['error']}\n{self.log.read_text(errors='replace')[-3000:]}")
        said: dict[str, int] = answer
        return said

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def reference_stage(directory: Path, server: Postgres | None = None) -> Stage:
    """The reference on SQLite, its quickest set-up for one client at a time, or on the given PostgreSQL."""
    stage = Stage("reference", reference_bin() / "python", directory, reference.settings)
    name, file = f"template_{next(_serial)}", directory / "template.sqlite"
    url = f"sqlite:///{file}" if server is None else server.create_database(name)
    reference.configure(directory, url)
    reference.sync_database(directory)
    stage.put_up(url)  # the first start writes the standard traits and classes
    stage.take_down()
    stage.databases = SqliteCopies(file) if server is None else PostgresCopies(server, name)
    return stage


def moorage_stage(directory: Path, server: Postgres | None = None) -> Stage:
    """Ours, on SQLite or on the given PostgreSQL."""
    stage = Stage("moorage", Path(sys.executable), directory, moorage_settings)
    if server is None:
        template = directory / "template.sqlite"
        _sync(f"sqlite:///{template}")
        stage.databases = SqliteCopies(template)
    else:
        name = f"template_{next(_serial)}"
        _sync(server.create_database(name))
        stage.databases = PostgresCopies(server, name)
    return stage


def moorage_settings(url: str) -> Settings:
    return {"database": {"connection": url}, "auth": {"strategy": "none"}}


def _sync(url: str) -> None:
    """Close every connection afterwards: a database in use can't be a template, nor can half a WAL."""
    connected = engine.connect(url)
    migrate.sync(connected)
    connected.dispose()


@cache
def rule_names() -> list[str]:
    """Every policy rule by the reference's name: ours are called the same."""
    script = "from placement import policies; print(*(rule.name for rule in policies.list_rules()))"
    listed = subprocess.run(
        [str(reference_bin() / "python"), "-W", "ignore", "-c", script],
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listed.stdout.split() if name != "admin_api"]
