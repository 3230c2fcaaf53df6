"""`moorage-api`: the Compute API alone, under Granian, with as many workers as asked for."""

from __future__ import annotations

from oslo_config import cfg

from moorage.bus import notifications
from moorage.bus.asking import AskingWhenNeeded
from moorage.cli.embedded.cloud import IMAGE_PATH
from moorage.cli.errors import Commands
from moorage.cli.options import ConfigFiles
from moorage.cli.processes import neighbours
from moorage.cli.processes import workers as granian
from moorage.cli.processes.placement_access import require_placement
from moorage.cli.processes.workers import Listen, Port, Threads, Workers
from moorage.compute.operations.standing import Onlooker
from moorage.compute.quotas import unified
from moorage.compute_api.service import ComputeService, ComputeSettings
from moorage.compute_api.wsgi import build
from moorage.conductor.operations.register import DECLARED
from moorage.db import engine
from moorage.db.database import Database
from moorage.http.auth import Wsgi
from moorage.images.api import wsgi as images_wsgi
from moorage.images.connect import connect as connect_images
from moorage.images.service import ImageService
from moorage.network.connect import connect as connect_network
from moorage.placement.client.connect import connect
from moorage.scheduler import options as scheduler_options

commands = Commands(help="Run the Compute API under Granian.")


@commands.command()
def serve(
    config_file: ConfigFiles = None,
    listen: Listen = None,
    port: Port = None,
    workers: Workers = None,
    threads: Threads = None,
) -> None:
    """Run the Compute API until SIGTERM. A worker that dies is started again.

    It needs the database and Placement ([placement_client]); conductors find what it writes by themselves.
    Only for what agents are asked within a request, as a server's console log, it needs RabbitMQ ([DEFAULT]
    transport_url).
    What is not given here comes from [compute] in the configuration.

    Example: moorage-api --config-file /etc/moorage/moorage.conf --listen 10.0.0.5 --workers 4
    """
    granian.serve(
        f"{__name__}:worker",
        "compute",
        config_file,
        check=_require_neighbours,
        listen=listen,
        port=port,
        workers=workers,
        threads=threads,
    )


def _require_neighbours(conf: cfg.ConfigOpts) -> None:
    require_placement(conf)
    unified.connect(conf)


def worker() -> Wsgi:
    """The application of one worker process."""
    conf = granian.begin("moorage-api")
    database = Database(engine.for_service(conf))
    images = ImageService.from_conf(conf, database)
    images.start()
    service = ComputeService(
        database=database,
        settings=ComputeSettings.from_conf(conf),
        images=connect_images(conf, images.catalogue),
        network=connect_network(conf, database),
        placement=connect(conf),
        agents=AskingWhenNeeded(conf),
        notifications=notifications.from_conf(conf),
        scheduler=scheduler_options.settings(conf),
        unified_limits=unified.connect(conf),
        checks=[*neighbours.placement(conf), *neighbours.network(conf), *neighbours.broker(conf)],
        onlooker=Onlooker(DECLARED, conf.conductor.lease_seconds),
    )
    return granian.ready(build(conf, service, {IMAGE_PATH: images_wsgi.build(conf, images)}))


def main() -> None:
    commands()
