"""`moorage-console-proxy`: the way of browsers to the consoles of servers."""

from __future__ import annotations

from typing import Annotated

import typer

from moorage.bus.asking import AskingWhenNeeded
from moorage.cli import metrics, settings
from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import ConfigFiles
from moorage.cli.processes import neighbours, reloading, workers
from moorage.cli.processes.shutdown import Shutdown, ignore_hangup
from moorage.consoles.server import ConsoleServer, listener
from moorage.consoles.settings import ConsoleSettings
from moorage.core import log, systemd
from moorage.db import engine, health
from moorage.db.database import Database

commands = Commands(help="Run the proxy to servers' consoles.")


@commands.command()
def run(
    config_file: ConfigFiles = None,
    listen: Annotated[str | None, typer.Option(help="The address to listen on.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port to listen on.", show_default=False)
    ] = None,
) -> None:
    """Run the proxy until SIGTERM; run as many as you like. Consoles that are open then are closed.

    It needs the database, RabbitMQ ([DEFAULT] transport_url), and to reach the consoles of all hosts. What is
    not given here comes from [consoles] in the configuration.

    Example: moorage-console-proxy --config-file /etc/moorage/moorage.conf --listen 203.0.113.5
    """
    ignore_hangup()
    given = {"consoles.listen": listen, "consoles.port": port}
    overrides = {name: value for name, value in given.items() if value is not None}
    conf = settings.read(config_file, overrides)
    log.set_up(conf.log.level, conf.log.format)
    workers.require_fitting_schema(conf, patient=True)
    ending = Shutdown(conf.process.grace_seconds)
    ending.listen()
    database = Database(engine.for_service(conf))
    options = ConsoleSettings.from_conf(conf)
    try:
        listening = listener(options.listen, options.port)
    except OSError as error:
        raise CommandError(f"can't listen on {options.listen}:{options.port}: {error}") from error
    checks = [*health.checks(database), *neighbours.broker(conf)]
    server = ConsoleServer(options, database, AskingWhenNeeded(conf), listening)
    notice = metrics.serve(conf.consoles, checks)
    server.start()

    def on_hangup() -> None:
        reloading.take_up(lambda: settings.read(config_file, overrides), lambda _: server.reload())

    systemd.tell_ready()
    ending.wait(on_hangup)
    notice.end()
    ending.drain(conf.process.drain_seconds)
    server.stop()
    database.engine.dispose()


def main() -> None:
    commands()
