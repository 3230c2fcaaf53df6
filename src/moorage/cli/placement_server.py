"""`moorage-placement`: the Placement service alone, under Granian, with as many workers as asked for."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import typer
from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from oslo_config import cfg

from moorage.cli import authentication, settings
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import ConfigFiles
from moorage.core import log, metrics
from moorage.db import engine, migrate
from moorage.http.auth import Wsgi
from moorage.placement.wsgi import build

commands = Commands(help="Run the Placement service under Granian.")

STOP_SECONDS = 10
"""A worker that lives longer is killed: Granian loses a signal that comes just as a worker gets ready."""


@commands.command()
def serve(
    config_file: ConfigFiles = None,
    listen: Annotated[str | None, typer.Option(help="The address to listen on.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port to listen on.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that answer requests.", show_default=False)
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Threads of each process.", show_default=False)
    ] = None,
) -> None:
    """Run the Placement service until SIGTERM. A worker that dies is started again.

    What is not given here comes from [placement] in the configuration.

    Example: moorage-placement --config-file /etc/moorage/moorage.conf --listen 10.0.0.5 --workers 4
    """
    metrics.share_among_workers()
    given = {"listen": listen, "port": port, "workers": workers, "threads": threads}
    overrides = {f"placement.{name}": value for name, value in given.items() if value is not None}
    conf = settings.read(config_file, overrides)
    authentication.check(conf, conf.placement.listen)
    if not settings.files(config_file):
        raise CommandError(f"no configuration: give --config-file, or make {settings.DEFAULT_FILE}")
    _require_current_schema(conf)
    # A worker reads its configuration by itself: all that it is given is the environment.
    os.environ[settings.ENVIRONMENT] = os.pathsep.join(settings.files(config_file))
    Granian(
        f"{__name__}:worker",
        factory=True,
        address=conf.placement.listen,
        port=conf.placement.port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=conf.placement.workers,
        blocking_threads=conf.placement.threads,
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_SECONDS,
        log_level=LogLevels.warning,
    ).serve()


def _require_current_schema(conf: cfg.ConfigOpts) -> None:
    connected = engine.from_conf(conf)
    found = migrate.version(connected)
    connected.dispose()  # no worker may inherit the connection
    if found != migrate.newest():
        raise CommandError(
            f"the schema is {found or 'empty'}, this release needs {migrate.newest()}: "
            "run `moorage-manage db sync`"
        )


def worker() -> Wsgi:
    """The application of one worker process, with the settings that its parent was given."""
    # A worker is forked with Granian's handlers of its parent, which would swallow the signal to stop if it
    # came now; Granian sets the worker's own when the application is built.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    conf = settings.read()
    log.set_up(conf.log.level)
    return build(conf)


def main() -> None:
    commands()
