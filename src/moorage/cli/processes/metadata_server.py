"""`moorage-metadata`: what guests ask at 169.254.169.254, for those who pass it on."""

from __future__ import annotations

from oslo_config import cfg

from moorage.cli.errors import CommandError, Commands
from moorage.cli.options import ConfigFiles
from moorage.cli.processes import workers as granian
from moorage.cli.processes.workers import Listen, Port, Threads, Workers
from moorage.db import engine
from moorage.db.database import Database
from moorage.http.auth import Wsgi
from moorage.metadata.wsgi import build

commands = Commands(help="Run the metadata service under Granian.")


@commands.command()
def serve(
    config_file: ConfigFiles = None,
    listen: Listen = None,
    port: Port = None,
    workers: Workers = None,
    threads: Threads = None,
) -> None:
    """Run the metadata service until SIGTERM, for Neutron's metadata agents and for moorage-agent.

    It needs the database, and [metadata] shared_secret. What is not given here comes from [metadata] in the
    configuration.

    Example: moorage-metadata --config-file /etc/moorage/moorage.conf --listen 10.0.0.5
    """
    granian.serve(
        f"{__name__}:worker",
        "metadata",
        config_file,
        check=_require_secret,
        listen=listen,
        port=port,
        workers=workers,
        threads=threads,
    )


def _require_secret(conf: cfg.ConfigOpts) -> None:
    if not conf.metadata.shared_secret:
        raise CommandError("[metadata] shared_secret is not set: nobody could ask for a guest")


def worker() -> Wsgi:
    """The application of one worker process."""
    conf = granian.begin("moorage-metadata")
    return granian.ready(build(conf, Database(engine.for_service(conf))))


def main() -> None:
    commands()
