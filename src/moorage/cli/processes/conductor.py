"""`moorage-conductor`: a conductor in a process of its own, on RabbitMQ."""

from __future__ import annotations

import logging

from oslo_config import cfg

from moorage.bus import notifications
from moorage.bus.asking import AskingWhenNeeded
from moorage.bus.messaging import MessagingConductorSide
from moorage.bus.messaging_queues import RabbitQueues
from moorage.cli import metrics, settings
from moorage.cli.errors import Commands
from moorage.cli.options import ConfigFiles
from moorage.cli.processes import neighbours, reloading, workers
from moorage.cli.processes.network_access import require_network
from moorage.cli.processes.placement_access import require_placement
from moorage.cli.processes.shutdown import Shutdown, ignore_hangup
from moorage.conductor.service import ConductorService, ConductorSettings
from moorage.core import log, systemd, tracing
from moorage.core.health import HealthCheck
from moorage.db import engine, health, waiting
from moorage.db.database import Database
from moorage.images.catalogue import Catalogue
from moorage.images.connect import connect_conductor as connect_images
from moorage.network.connect import connect_conductor
from moorage.placement.client.connect import connect
from moorage.placement.client.contract import PlacementClient
from moorage.placement.client.local import LocalPlacement
from moorage.placement.service import PlacementService, PlacementSettings

LOG = logging.getLogger(__name__)
commands = Commands(help="Run a conductor.")


@commands.command()
def run(config_file: ConfigFiles = None) -> None:
    """Run a conductor until SIGTERM; run as many as you like, on as many machines.

    It needs the database, RabbitMQ ([DEFAULT] transport_url) and Placement ([placement_client]; none if
    [conductor] placement is database).

    Example: moorage-conductor --config-file /etc/moorage/moorage.conf
    """
    ignore_hangup()
    conf = settings.read(config_file)
    log.set_up(conf.log.level, conf.log.format)
    tracing.set_up(conf, "moorage-conductor")
    workers.require_fitting_schema(conf, patient=True)
    require_network(conf)
    ending = Shutdown(conf.process.grace_seconds)
    ending.listen()
    database = Database(engine.for_service(conf))
    placement = _placement(conf, database)
    service = ConductorService(
        database,
        ConductorSettings.from_conf(conf),
        MessagingConductorSide(conf),
        connect_conductor(conf, database),
        placement,
        connect_images(conf, Catalogue(database)),
        notifications.from_conf(conf),
        AskingWhenNeeded(conf),
        RabbitQueues(conf),
    )
    notice = metrics.serve(conf.conductor, [*health.checks(database), *_neighbours(conf), *service.checks()])
    service.start()
    systemd.tell_ready()
    ending.wait(lambda: reloading.take_up(lambda: settings.read(config_file)))
    notice.end()
    service.stop()
    database.engine.dispose()


def _neighbours(conf: cfg.ConfigOpts) -> list[HealthCheck]:
    placed_by_service = conf.conductor.placement == "service"
    return [
        *(neighbours.placement(conf) if placed_by_service else []),
        *neighbours.network(conf),
        *neighbours.broker(conf),
    ]


def _placement(conf: cfg.ConfigOpts, database: Database) -> PlacementClient:
    if conf.conductor.placement == "service":
        require_placement(conf)
        return connect(conf)
    service = PlacementService(database, PlacementSettings.from_conf(conf))
    waiting.wait_for(service.start, conf.database.wait_seconds)
    waiting.wait_for(service.warm_up, conf.database.wait_seconds)
    LOG.info("decisions ask Placement's tables in %s", database.engine.url.render_as_string())
    return LocalPlacement(service)


def main() -> None:
    commands()
