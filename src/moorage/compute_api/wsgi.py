"""The Compute API as a WSGI application; whoever starts it says what it is wired to."""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg
from oslo_middleware import cors

from moorage.compute.errors import ComputeError
from moorage.compute_api import errors, policies
from moorage.compute_api.agents_refused import AgentsRefused
from moorage.compute_api.mount import Mount, ProjectInPath
from moorage.compute_api.routes import FURTHER_RULES, ROUTES
from moorage.compute_api.service import ComputeService
from moorage.compute_api.versions import VERSIONS
from moorage.db import health
from moorage.http import auth, public_address
from moorage.http.app import Application
from moorage.http.auth import Wsgi
from moorage.http.concurrency import ConcurrencyLimit
from moorage.http.entry import EntryMiddleware
from moorage.http.policy import Authorizer

OLD_REQUEST_ID = "x-compute-request-id"
"""What the Compute API called it before there was a name for all services; clients still read it."""


def build(conf: cfg.ConfigOpts, service: ComputeService, others: Mapping[str, Wsgi] | None = None) -> Wsgi:
    """The whole stack; `others` are applications that share the port, by the path of each."""
    api = Application(
        service,
        ROUTES,
        VERSIONS,
        Authorizer(conf, policies.rules(ROUTES, FURTHER_RULES)),
        style=errors.STYLE,
        lenient=True,
        longest_body=conf.compute.max_request_body_size,
        translations={ComputeError: errors.answer},
    )
    checked = auth.middleware(conf, frozenset(), errors.STYLE)(AgentsRefused(ProjectInPath(api.wsgi)))
    stack: Wsgi = Mount(checked, others or {})
    conf.register_opts(cors.CORS_OPTS, group="cors")
    if conf.cors.allowed_origin:
        stack = cors.CORS(stack, conf)
    stack = public_address.middleware(conf, stack, conf.compute.public_endpoint)
    checks = [*health.checks(service.database), *service.checks]
    return EntryMiddleware(
        ConcurrencyLimit(stack, conf.compute.threads), "compute", checks, (OLD_REQUEST_ID,)
    )
