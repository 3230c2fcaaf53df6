"""The built-in Image API as a WSGI application; it is mounted beside the Compute API."""

from __future__ import annotations

from oslo_config import cfg

from moorage.http import auth
from moorage.http.app import Application
from moorage.http.auth import Wsgi
from moorage.http.errors import GuidelineStyle, HttpError
from moorage.http.policy import Authorizer
from moorage.images.api import policies
from moorage.images.api.routes import ROUTES, VERSIONS
from moorage.images.contract import ImageNotFoundError, ImageRefusedError
from moorage.images.members import TooManyMembersError
from moorage.images.service import ImageService

_STYLE = GuidelineStyle(undefined_code="image.undefined_code", codes_since=(2, 0))
_PUBLIC = frozenset({"", "/", "/versions"})


def build(conf: cfg.ConfigOpts, service: ImageService) -> Wsgi:
    api = Application(
        service,
        ROUTES,
        VERSIONS,
        Authorizer(conf, policies.rules()),
        style=_STYLE,
        longest_body=conf.compute.max_request_body_size,
        translations={
            ImageNotFoundError: lambda error: HttpError(404, str(error)),
            TooManyMembersError: lambda error: HttpError(413, str(error)),
            ImageRefusedError: lambda error: HttpError(403, str(error)),
        },
    )
    return auth.middleware(conf, _PUBLIC, _STYLE)(api.wsgi)
