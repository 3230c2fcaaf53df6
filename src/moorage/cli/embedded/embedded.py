"""All of Moorage in one process: what `moorage up` runs."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from oslo_config import cfg

from moorage.cli import address, authentication, settings
from moorage.cli.commands import doctor
from moorage.cli.embedded import credentials, data_claim
from moorage.cli.embedded.cloud import METADATA_PATH, STREAMED, Cloud
from moorage.cli.embedded.credentials import Credentials, Endpoints
from moorage.cli.errors import CommandError
from moorage.cli.processes import metadata_forwarding, reloading
from moorage.cli.processes.shutdown import Shutdown, ignore_hangup
from moorage.consoles.server import ConsoleServer, listener
from moorage.consoles.settings import ConsoleSettings
from moorage.core import log, private, systemd, tracing
from moorage.db import engine, migrate
from moorage.db.migrate import SchemaTooNewError
from moorage.drivers import installed
from moorage.http.auth import Wsgi
from moorage.http.server import HttpServer
from moorage.metadata import wsgi as metadata_wsgi
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService
from moorage.placement.wsgi import build

_KEPT = ("moorage.sqlite", "password", "htpasswd", "clouds.yaml", "lock", "agents", "images")
"""What is in the data directory."""
_CONSOLE_PORT = 6080
QUIET = "WARNING"
"""The terminal is for the greeting, unless somebody asks for more."""


@dataclass(frozen=True)
class UpOptions:
    """What the command line asked for. None leaves a choice to the configuration file."""

    data: Path
    listen: str
    placement_port: int
    compute_port: int
    console_port: int | None
    driver: str | None
    hosts: int | None
    auth: str | None
    config: Path | None
    verbose: bool = False


class Embedded:
    """The services of one process, from the database up. Built first, so that a mistake shows at once."""

    def __init__(self, plan: UpOptions) -> None:
        ignore_hangup()
        self.plan = plan
        self.conf = self._configure()
        log.set_up(self.conf.log.level, self.conf.log.format)
        authentication.check(self.conf, plan.listen)
        _require_no_tls(self.conf)
        tracing.set_up(self.conf, "moorage")
        private.directory(plan.data, _KEPT)
        self._claimed = data_claim.claim(plan.data)
        for_neutron = bool(self.conf.metadata.shared_secret)
        self.conf.set_default("shared_secret", secrets.token_hex(), group="metadata")
        listening = self._listen_for_consoles()
        scheme = "https" if self.conf.consoles.cert else "http"
        here = address.url(plan.listen, listening.getsockname()[1], scheme)
        self.conf.set_default("base_url", here, group="consoles")
        self.credentials = self._credentials()
        self.endpoints = Endpoints(
            placement=address.url(plan.listen, plan.placement_port),
            compute=address.url(plan.listen, plan.compute_port),
        )
        self.clouds_file = self._write_clouds_file()
        self._migrate()
        self._placement = PlacementService.from_conf(self.conf)
        self._placement.start()
        client = LocalPlacement(self._placement)
        self._cloud = Cloud(self.conf, self._placement.database, client, plan.data, self._hosts())
        self._consoles = ConsoleServer(
            ConsoleSettings.from_conf(self.conf),
            self._placement.database,
            self._cloud.asking_side(),
            listening,
        )
        self._applications = [
            (plan.placement_port, build(self.conf, self._placement), self.conf.placement),
            (plan.compute_port, self._cloud.application(), self.conf.compute),
        ]
        if for_neutron:
            metadata = metadata_wsgi.build(self.conf, self._placement.database)
            self._applications.append((self.conf.metadata.port, metadata, self.conf.metadata))

    @property
    def first_steps(self) -> tuple[str, ...]:
        """What its driver says to try; nothing if its servers are as any others."""
        return installed.find(self.conf.agent.driver).first_steps

    @property
    def example_image(self) -> str:
        """One that servers of this cloud boot from."""
        return self._cloud.example_image

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
        self._consoles.start()
        asked = metadata_forwarding.settings(self.conf, f"{self.endpoints.compute}{METADATA_PATH}")
        forwarder = metadata_forwarding.start(asked, self._cloud.drivers)
        for server in servers:
            server.start()
        systemd.tell_ready()
        on_ready()
        ending.wait(self._reload)
        for server in servers:
            server.stop(ending.seconds_left / 2)  # the other half is for what goes on without requests
        if forwarder is not None:
            forwarder.stop()
        self._consoles.stop()
        self._cloud.stop()
        self._placement.stop()
        self._claimed.close()

    def _reload(self) -> None:
        """What can change while it runs; what makes no sense is refused as a whole."""
        reloading.take_up(self._configure, self._cloud.reload, lambda _: self._consoles.reload())

    def _listen(self, port: int, application: Wsgi, options: cfg.ConfigOpts.GroupAttr) -> HttpServer:
        try:
            return HttpServer(
                self.plan.listen,
                port,
                application,
                threads=options.threads,
                longest_body=options.max_request_body_size,
                streamed=STREAMED,
            )
        except OSError as error:
            raise CommandError(f"can't listen on {address.url(self.plan.listen, port)}: {error}") from error

    def _migrate(self) -> None:
        """Without the services' bound on how long a statement may take."""
        connected = engine.from_conf(self.conf)
        try:
            migrate.sync(connected)
        except SchemaTooNewError as error:
            raise CommandError(str(error)) from error
        finally:
            connected.dispose()

    def _listen_for_consoles(self) -> socket.socket:
        """Where nobody asks for a port, any will do: the URLs of consoles name it."""
        plan = self.plan
        try:
            return listener(plan.listen, _CONSOLE_PORT if plan.console_port is None else plan.console_port)
        except OSError as error:
            if plan.console_port is None:
                return listener(plan.listen, 0)
            where = address.url(plan.listen, plan.console_port)
            raise CommandError(f"can't listen on {where}: {error}") from error

    def _configure(self) -> cfg.ConfigOpts:
        """A file's settings win over our defaults; the command line wins over both."""
        level = "INFO" if self.plan.verbose else None
        asked = {"auth.strategy": self.plan.auth, "agent.driver": self.plan.driver, "log.level": level}
        overrides = {name: value for name, value in asked.items() if value is not None}
        conf = settings.read([self.plan.config] if self.plan.config else None, overrides)
        conf.set_default("connection", f"sqlite:///{self.plan.data / 'moorage.sqlite'}", group="database")
        conf.set_default("strategy", "basic", group="auth")
        conf.set_default("level", QUIET, group="log")
        conf.set_default("directory", str(self.plan.data / "images"), group="images")
        conf.set_default("basic_auth_file", str(self.plan.data / "htpasswd"), group="auth")
        return conf

    def _hosts(self) -> int:
        """How many there are; of a driver that uses this machine, one."""
        driver = self.conf.agent.driver
        plugin = installed.find(driver)
        doctor.require(plugin.check(self.conf), driver)
        if not plugin.is_this_machine:
            return plugin.hosts if self.plan.hosts is None else self.plan.hosts
        if self.plan.hosts is not None and self.plan.hosts > 1:
            raise CommandError(f"--hosts: the driver {driver} has one host, which is this machine")
        return 1 if self.plan.hosts is None else self.plan.hosts

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


def _require_no_tls(conf: cfg.ConfigOpts) -> None:
    """Rather than speak in the clear where an operator believes otherwise."""
    for group in ("compute", "placement", "metadata"):
        if conf[group].cert:
            raise CommandError(
                f"[{group}] cert: `moorage up` speaks TLS to consoles only. Put a proxy in front of it, or "
                "run the processes on their own, which do"
            )
