"""The outermost layer: gives each request its id, its log line and its place in the metrics."""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from prometheus_client import Counter, Histogram

from moorage.core import context, metrics, tracing
from moorage.core.context import WorkContext
from moorage.core.health import Health, HealthCheck
from moorage.http import health_pages
from moorage.http.auth import StartResponse, Wsgi
from moorage.http.caller import Environ
from moorage.http.route import ROUTE

LOG = logging.getLogger(__name__)

REQUESTS = Counter("moorage_http_requests_total", "Requests answered.", ["service", "method", "status"])
SECONDS = Histogram(
    "moorage_http_request_seconds",
    "Time to answer a request.",
    ["service", "method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Counted by name; a caller could invent any number of others, each a time series of its own for ever."""
_REQUEST_ID = re.compile(r"^req-[0-9a-fA-F-]{36}$")


class EntryMiddleware:
    """`id_headers` are further names under which answers tell their request id."""

    def __init__(
        self, inner: Wsgi, service: str, checks: Sequence[HealthCheck], id_headers: Sequence[str] = ()
    ) -> None:
        self._inner = inner
        self._id_headers = ("x-openstack-request-id", *id_headers)
        self._service = service
        self._health = Health(checks)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return _answer(start_response, "200 OK", metrics.CONTENT_TYPE, metrics.exposition())
        if path in health_pages.PATHS:
            page = health_pages.page(self._health, path)
            return _answer(start_response, page.status, page.content_type, page.body)
        return self._serve(environ, start_response)

    def _serve(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        request_id = f"req-{uuid.uuid4()}"
        given = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        global_request_id = given if _REQUEST_ID.match(given) else ""
        with context.working(WorkContext(request_id=request_id, global_request_id=global_request_id)):
            return self._answer(environ, start_response, request_id)

    def _answer(self, environ: Environ, start_response: StartResponse, request_id: str) -> Iterable[bytes]:
        seen_status = "500"
        begun = time.perf_counter()

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            nonlocal seen_status
            seen_status = status[:3]
            named = [(name, request_id) for name in self._id_headers]
            return start_response(status, [*headers, *named], exc_info)

        try:
            return self._inner(environ, start)
        finally:
            seconds = time.perf_counter() - begun
            method = environ["REQUEST_METHOD"]
            counted = method if method in _METHODS else "other"
            REQUESTS.labels(self._service, counted, seen_status).inc()
            route = environ.get(ROUTE, "")
            SECONDS.labels(self._service, counted, route).observe(seconds)
            failure = f"status {seen_status}" if seen_status >= "500" else None
            name = f"{self._service}: {counted} {route}".rstrip()
            tracing.record(name, context.current(), seconds, failure, is_request=True)
            if LOG.isEnabledFor(logging.INFO):
                query = environ.get("QUERY_STRING")
                LOG.info(
                    '%s "%s %s%s" status: %s time: %.4f',
                    environ.get("REMOTE_ADDR", "-"),
                    method,
                    quote(environ.get("PATH_INFO", ""), encoding="latin-1"),  # no line breaks in the log
                    f"?{query}" if query else "",
                    seen_status,
                    seconds,
                )


def _answer(start_response: StartResponse, status: str, content_type: str, body: bytes) -> Iterable[bytes]:
    start_response(status, [("Content-Type", content_type), ("Content-Length", str(len(body)))])
    return [body]
