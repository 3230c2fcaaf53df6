"""`moorage-placement`: the Placement service alone, under Granian, with as many workers as asked for."""

from __future__ import annotations

from moorage.cli.errors import Commands
from moorage.cli.options import ConfigFiles
from moorage.cli.processes import workers as granian
from moorage.cli.processes.workers import Listen, Port, Threads, Workers
from moorage.http.auth import Wsgi
from moorage.placement.wsgi import build

commands = Commands(help="Run the Placement service under Granian.")


@commands.command()
def serve(
    config_file: ConfigFiles = None,
    listen: Listen = None,
    port: Port = None,
    workers: Workers = None,
    threads: Threads = None,
) -> None:
    """Run the Placement service until SIGTERM. A worker that dies is started again.

    What is not given here comes from [placement] in the configuration.

    Example: moorage-placement --config-file /etc/moorage/moorage.conf --listen 10.0.0.5 --workers 4
    """
    granian.serve(
        f"{__name__}:worker",
        "placement",
        config_file,
        listen=listen,
        port=port,
        workers=workers,
        threads=threads,
    )


def worker() -> Wsgi:
    """The application of one worker process."""
    return granian.ready(build(granian.begin("moorage-placement")))


def main() -> None:
    commands()
