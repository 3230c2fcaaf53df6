"""A WSGI service under Granian: what `moorage-placement` and `moorage-api` have in common."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from oslo_config import cfg

from moorage.cli import address, authentication, settings
from moorage.cli.errors import CommandError
from moorage.cli.processes import worker_trial
from moorage.cli.processes.granian_server import GranianServer
from moorage.cli.processes.shutdown import Shutdown, ignore_hangup
from moorage.core import log, metrics, systemd, tracing
from moorage.db import engine, schema_fit, waiting
from moorage.db.schema_fit import Fit
from moorage.http.auth import Wsgi
from moorage.http.draining import DrainMiddleware, DrainNotice
from moorage.http.tls import TlsFiles

LOG = logging.getLogger(__name__)
MOST_CONNECTIONS = 512
"""Of a worker. Each may have a thread that waits for the rest of a body; how many requests are worked on at
the same time is another matter (`http/concurrency.py`)."""
IDLE_MILLISECONDS = 30_000
"""After which a connection is closed that is not used, or whose request has not got as far as its body."""
_SPARE_SECONDS = 3
"""Of the grace period, for the parent: a worker that lives longer is killed. Granian loses a signal that
comes just as a worker gets ready."""

_OVERRIDES = "MOORAGE_COMMAND_LINE"

Listen = Annotated[str | None, typer.Option(help="The address to listen on.", show_default=False)]
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="The port to listen on.", show_default=False)
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Processes that answer requests.", show_default=False)
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads of each process.", show_default=False)]


def serve(
    factory: str,
    group: str,
    config_file: Sequence[Path] | None,
    *,
    check: Callable[[cfg.ConfigOpts], None] = lambda conf: None,
    **given: str | int | None,
) -> None:
    """Serve what `factory` ("module:function") makes, as the options of `group` and of the command say.

    `check` may refuse, once for all workers.
    """
    ignore_hangup()
    metrics.share_among_workers()
    overrides = {f"{group}.{name}": value for name, value in given.items() if value is not None}
    conf = settings.read(config_file, overrides)
    log.set_up(conf.log.level, conf.log.format)
    options = conf[group]
    authentication.check(conf, options.listen)
    address.require_free(options.listen, options.port)
    tls = TlsFiles.from_conf(conf, group)
    if not settings.files(config_file):
        raise CommandError(f"no configuration: give --config-file, or make {settings.DEFAULT_FILE}")
    require_fitting_schema(conf, patient=True)
    check(conf)
    os.environ.update(handed_on(settings.files(config_file), overrides))
    grace = conf.process.grace_seconds
    drain = min(conf.process.drain_seconds, grace / 2)

    def judge() -> None:
        changed = settings.read(config_file, overrides)
        authentication.check(changed, options.listen)
        worker_trial.require_a_start(factory)
        logging.getLogger().setLevel(changed.log.level)

    server = GranianServer(
        factory,
        drain_seconds=drain,
        tls=tls,
        judge=judge,
        factory=True,
        address=options.listen,
        port=options.port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=options.workers,
        blocking_threads=MOST_CONNECTIONS,
        backpressure=MOST_CONNECTIONS,
        http1_settings=HTTP1Settings(header_read_timeout=IDLE_MILLISECONDS),
        respawn_failed_workers=True,
        workers_kill_timeout=max(1, int(grace - drain) - _SPARE_SECONDS),
        log_level=LogLevels.warning,
    )
    Shutdown(grace, by_force=_kill_workers).listen(handle=False)
    systemd.tell_ready_once_answering(options.listen, options.port)
    server.serve()


def _kill_workers() -> None:
    """All of them: amid a reload there are some that Granian has forgotten."""
    for worker in multiprocessing.active_children():
        worker.kill()


def handed_on(files: Sequence[str], overrides: Mapping[str, str | int]) -> dict[str, str]:
    """What a worker, which reads its configuration by itself, finds in its environment: also what the command
    line says, as `--threads`."""
    return {settings.ENVIRONMENT: os.pathsep.join(files), _OVERRIDES: json.dumps(overrides)}


def begin(service: str) -> cfg.ConfigOpts:
    """Called first by a factory of `service`, in a worker: the configuration that its parent was given."""
    # A worker is forked with Granian's handlers of its parent, which would swallow the signal to stop if it
    # came now; Granian sets the worker's own when the application is built.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    ignore_hangup()  # its parent reads everything anew, and starts new workers
    conf = settings.read(None, json.loads(os.environ.get(_OVERRIDES, "{}")))
    log.set_up(conf.log.level, conf.log.format)
    tracing.set_up(conf, service)
    return conf


def ready(application: Wsgi) -> Wsgi:
    """Called last by a factory: its neighbours are there, and requests are answered from now on, until its
    parent gives notice."""
    return DrainMiddleware(application, DrainNotice.of_worker())


def require_fitting_schema(conf: cfg.ConfigOpts, *, patient: bool = False) -> None:
    """A service is `patient` with a database that is away: machines come back in any order after a power cut.
    Who types a command wants to know at once."""
    connected = engine.from_conf(conf)
    seconds = conf.database.wait_seconds if patient else 0
    found = waiting.wait_for(lambda: schema_fit.look(connected), seconds)
    connected.dispose()  # no worker may inherit the connection
    if not found.may_run:
        raise CommandError(f"the schema {found.sentence}")
    if found.fit is Fit.NEWER:
        LOG.warning("the schema %s", found.sentence)
