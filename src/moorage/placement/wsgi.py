"""The Placement service as a WSGI application, for any server.

`application` reads the configuration files that the environment variable MOORAGE_CONFIG names (several are
separated by a colon; the default is /etc/moorage/moorage.conf).
"""

from __future__ import annotations

import os

from oslo_config import cfg
from oslo_middleware import cors

from moorage.core import config, log, tracing
from moorage.core import options as log_options
from moorage.db import health, waiting
from moorage.db import options as db_options
from moorage.http import auth, public_address
from moorage.http import options as http_options
from moorage.http.app import Application
from moorage.http.auth import Wsgi
from moorage.http.concurrency import ConcurrencyLimit
from moorage.http.entry import EntryMiddleware
from moorage.http.policy import Authorizer
from moorage.placement import options
from moorage.placement.api import policies, refusals
from moorage.placement.api.routes import ROUTES
from moorage.placement.api.versions import VERSIONS
from moorage.placement.errors import PlacementError
from moorage.placement.microversions import Microversion
from moorage.placement.service import PlacementService

OPTIONS = (log_options.OPTIONS, db_options.OPTIONS, http_options.OPTIONS, options.OPTIONS)
DEFAULT_FILE = "/etc/moorage/moorage.conf"
_PUBLIC = frozenset({"", "/", "/openapi.json"})


def build(conf: cfg.ConfigOpts, service: PlacementService | None = None) -> Wsgi:
    """The whole stack; the database's schema must be current (`moorage-manage db sync`)."""
    if service is None:
        service = PlacementService.from_conf(conf)
        waiting.wait_for(service.start, conf.database.wait_seconds)
    api = Application(
        service,
        ROUTES,
        VERSIONS,
        Authorizer(conf, policies.rules(ROUTES)),
        style=refusals.STYLE,
        longest_body=conf.placement.max_request_body_size,
        caching_since=Microversion.CACHING_HEADERS,
        translations={PlacementError: refusals.default_answer},
    )
    stack: Wsgi = auth.middleware(conf, _PUBLIC, refusals.STYLE)(api.wsgi)
    conf.register_opts(cors.CORS_OPTS, group="cors")
    if conf.cors.allowed_origin:
        stack = cors.CORS(stack, conf)
    stack = public_address.middleware(conf, stack, conf.placement.public_endpoint)
    return EntryMiddleware(
        ConcurrencyLimit(stack, conf.placement.threads), "placement", health.checks(service.database)
    )


def configuration() -> cfg.ConfigOpts:
    files = os.environ.get("MOORAGE_CONFIG", DEFAULT_FILE).split(":")
    return config.read(files, OPTIONS)


def __getattr__(name: str) -> Wsgi:
    """Build `application` when a server asks for it, not when somebody imports the module."""
    if name != "application":
        raise AttributeError(name)
    conf = configuration()
    log.set_up(conf.log.level, conf.log.format)
    tracing.set_up(conf, "moorage-placement")
    globals()["application"] = built = build(conf)
    return built
