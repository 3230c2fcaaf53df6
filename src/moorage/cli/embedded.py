"""All of Moorage in one process: what `moorage up` runs."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

import sqlalchemy as sa
from cheroot import wsgi
from oslo_config import cfg

from moorage.cli import address, authentication, credentials, settings
from moorage.cli.cloud import Cloud
from moorage.cli.credentials import Credentials, Endpoints
from moorage.cli.errors import CommandError
from moorage.core import private
from moorage.db import engine, migrate
from moorage.http.auth import Wsgi
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService
from moorage.placement.wsgi import build

THREADS = 16
KEPT_CONNECTIONS = 512
"""Of idle clients; one more, and a connection is closed after its answer."""
_KEPT = ("moorage.sqlite", "password", "htpasswd", "clouds.yaml", "lock", "agents")
"""What is in the data directory."""


@dataclass(frozen=True)
class Plan:
    """What the command line asked for. None leaves a choice to the configuration file."""

    data: Path
    listen: str
    placement_port: int
    compute_port: int
    hosts: int
    auth: str | None
    config: Path | None


class Embedded:
    """The services of one process, from the database up. Built first, so that a mistake shows at once."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.conf = self._configure()
        authentication.check(self.conf, plan.listen)
        private.directory(plan.data, _KEPT)
        self._claimed = _claim(plan.data)
        self.credentials = self._credentials()
        self.endpoints = Endpoints(
            placement=address.url(plan.listen, plan.placement_port),
            compute=address.url(plan.listen, plan.compute_port),
        )
        self.clouds_file = self._write_clouds_file()
        migrate.sync(engine.from_conf(self.conf))
        self._placement = PlacementService.from_conf(self.conf)
        self._placement.start()
        client = LocalPlacement(self._placement)
        self._cloud = Cloud(self.conf, self._placement.database, client, plan.data, plan.hosts)
        self._servers = {
            self.endpoints.placement: _server(
                plan.listen, plan.placement_port, build(self.conf, self._placement)
            ),
            self.endpoints.compute: _server(plan.listen, plan.compute_port, self._cloud.application()),
        }
        self._stopped = threading.Event()

    @property
    def database(self) -> str:
        """Where the data is, without the password."""
        return sa.make_url(self.conf.database.connection).render_as_string(hide_password=True)

    def run(self, on_ready: Callable[[], None]) -> None:
        """Serve until SIGTERM or SIGINT; `on_ready` is called once requests are answered."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        for endpoint, server in self._servers.items():
            try:
                server.prepare()
            except OSError as error:
                raise CommandError(f"can't listen on {endpoint}: {error}") from error
        self._cloud.start()
        threads = [threading.Thread(target=server.serve, name="http") for server in self._servers.values()]
        for thread in threads:
            thread.start()
        on_ready()
        self._stopped.wait()
        for server in self._servers.values():
            server.stop()
        for thread in threads:
            thread.join()
        self._cloud.stop()
        self._placement.stop()
        self._claimed.close()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopped.set()

    def _configure(self) -> cfg.ConfigOpts:
        """A file's settings win over our defaults; the command line wins over both."""
        overrides = {} if self.plan.auth is None else {"auth.strategy": self.plan.auth}
        conf = settings.read([self.plan.config] if self.plan.config else None, overrides)
        conf.set_default("connection", f"sqlite:///{self.plan.data / 'moorage.sqlite'}", group="database")
        conf.set_default("strategy", "basic", group="auth")
        conf.set_default("basic_auth_file", str(self.plan.data / "htpasswd"), group="auth")
        return conf

    def _credentials(self) -> Credentials | None:
        """Ours only where the service reads our password file; an operator's own file is left alone."""
        own_file = str(self.plan.data / "htpasswd")
        if self.conf.auth.strategy == "basic" and self.conf.auth.basic_auth_file == own_file:
            return credentials.of_directory(self.plan.data)
        return None

    def _write_clouds_file(self) -> Path | None:
        if self.credentials is None and self.conf.auth.strategy != "none":
            return None
        path = self.plan.data / "clouds.yaml"
        credentials.write_private(path, credentials.clouds_yaml(self.endpoints, self.credentials))
        return path


def _claim(data: Path) -> TextIO:
    """A directory has one process: two would share a ledger that each believes to be its own."""
    claimed = os.fdopen(os.open(data / "lock", os.O_CREAT | os.O_WRONLY, 0o600), "w")
    os.fchmod(claimed.fileno(), 0o600)
    try:
        fcntl.flock(claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        claimed.close()
        raise CommandError(f"another `moorage up` runs on {data}; choose another --data") from error
    return claimed


def _server(listen: str, port: int, application: Wsgi) -> wsgi.Server:
    server = wsgi.Server((listen, port), application, numthreads=THREADS)
    server.keep_alive_conn_limit = KEPT_CONNECTIONS
    return server
