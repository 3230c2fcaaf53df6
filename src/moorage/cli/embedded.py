"""All of Moorage in one process: what `moorage up` runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import sqlalchemy as sa
from oslo_config import cfg

from moorage.cli import address, authentication, credentials, settings
from moorage.cli.cloud import Cloud
from moorage.cli.credentials import Credentials, Endpoints
from moorage.cli.errors import CommandError
from moorage.cli.shutdown import Shutdown, ignore_hangup
from moorage.core import private
from moorage.db import engine, migrate
from moorage.http.auth import Wsgi
from moorage.http.server import HttpServer
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService
from moorage.placement.wsgi import build

_KEPT = ("moorage.sqlite", "password", "htpasswd", "clouds.yaml", "lock", "agents")
"""What is in the data directory."""


@dataclass(frozen=True)
class UpOptions:
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

    def __init__(self, plan: UpOptions) -> None:
        ignore_hangup()
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
        self._applications = (
            (plan.placement_port, build(self.conf, self._placement), self.conf.placement),
            (plan.compute_port, self._cloud.application(), self.conf.compute),
        )

    @property
    def database(self) -> str:
        """Where the data is, without the password."""
        return sa.make_url(self.conf.database.connection).render_as_string(hide_password=True)

    def run(self, on_ready: Callable[[], None]) -> None:
        """Serve until SIGTERM or SIGINT; `on_ready` is called once requests are answered."""
        ending = Shutdown(self.conf.process.grace_seconds)
        ending.listen()
        servers = [self._listen(*served) for served in self._applications]
        self._cloud.start()
        for server in servers:
            server.start()
        on_ready()
        ending.wait()
        for server in servers:
            server.stop(ending.seconds_left / 2)  # the other half is for what goes on without requests
        self._cloud.stop()
        self._placement.stop()
        self._claimed.close()

    def _listen(self, port: int, application: Wsgi, options: cfg.ConfigOpts.GroupAttr) -> HttpServer:
        try:
            return HttpServer(
                self.plan.listen,
                port,
                application,
                threads=options.threads,
                longest_body=options.max_request_body_size,
            )
        except OSError as error:
            raise CommandError(f"can't listen on {address.url(self.plan.listen, port)}: {error}") from error

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
