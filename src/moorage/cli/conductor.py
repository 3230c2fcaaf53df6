"""`moorage-conductor`: a conductor in a process of its own, on RabbitMQ."""

from __future__ import annotations

import signal
import threading

from moorage.bus import notifications
from moorage.bus.messaging import MessagingConductorSide
from moorage.cli import metrics, settings, workers
from moorage.cli.errors import Commands
from moorage.cli.network_access import require_network
from moorage.cli.options import ConfigFiles
from moorage.cli.placement_access import require_placement
from moorage.conductor.service import ConductorService, Settings
from moorage.core import log
from moorage.db import engine
from moorage.db.database import Database
from moorage.network.connect import connect_conductor
from moorage.placement.client.connect import connect

commands = Commands(help="Run a conductor.")


@commands.command()
def run(config_file: ConfigFiles = None) -> None:
    """Run a conductor until SIGTERM; run as many as you like, on as many machines.

    It needs the database, RabbitMQ ([DEFAULT] transport_url) and Placement ([placement_client]).

    Example: moorage-conductor --config-file /etc/moorage/moorage.conf
    """
    conf = settings.read(config_file)
    log.set_up(conf.log.level)
    workers.require_current_schema(conf)
    require_placement(conf)
    require_network(conf)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    database = Database(engine.from_conf(conf))
    service = ConductorService(
        database,
        Settings.from_conf(conf),
        MessagingConductorSide(conf),
        connect_conductor(conf, database),
        connect(conf),
        notifications.from_conf(conf),
    )
    metrics.serve(conf.conductor)
    service.start()
    stopped.wait()
    service.stop()


def main() -> None:
    commands()
