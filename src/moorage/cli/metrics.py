"""The metrics of a process that serves nothing else over HTTP."""

from __future__ import annotations

from oslo_config import cfg
from prometheus_client import start_http_server

from moorage.cli.errors import CommandError


def serve(options: cfg.ConfigOpts.GroupAttr) -> None:
    """Serve `/metrics` where the options of a group say, if they name a port."""
    if not options.metrics_port:
        return
    try:
        start_http_server(options.metrics_port, options.metrics_listen)
    except OSError as error:
        where = f"{options.metrics_listen}:{options.metrics_port}"
        raise CommandError(f"can't serve metrics on {where}: {error}") from error
