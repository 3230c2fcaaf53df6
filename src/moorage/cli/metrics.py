"""The metrics and the health of a process that serves nothing else over HTTP."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Sequence
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_config import cfg
from prometheus_client import make_wsgi_app

from moorage.cli.errors import CommandError
from moorage.core.health import Health, HealthCheck
from moorage.http import health_pages
from moorage.http.draining import DrainNotice


def serve(options: cfg.ConfigOpts.GroupAttr, checks: Sequence[HealthCheck]) -> DrainNotice:
    """Serve `/metrics`, `/healthz` and `/readyz` where the options of a group say, if they name a port.

    Who calls it tells the notice when the process is about to end.
    """
    notice = DrainNotice.of_worker()
    if not options.metrics_port:
        return notice
    family = _Server6 if ":" in options.metrics_listen else _Server
    try:
        served = _application(Health(checks), notice)
        server = make_server(options.metrics_listen, options.metrics_port, served, family, _Quiet)
    except OSError as error:
        where = f"{options.metrics_listen}:{options.metrics_port}"
        raise CommandError(f"can't serve metrics on {where}: {error}") from error
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return notice


def _application(health: Health, notice: DrainNotice) -> WSGIApplication:
    metrics = make_wsgi_app()

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path not in health_pages.PATHS:
            answered: Iterable[bytes] = metrics(environ, start_response)
            return answered
        is_ending = notice.ending and path == health_pages.READINESS
        page = health_pages.ENDING if is_ending else health_pages.page(health, path)
        start_response(page.status, [("Content-Type", page.content_type)])
        return [page.body]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    """Whoever asks slowly keeps nobody else waiting."""

    daemon_threads = True


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Probes come every few seconds."""
