"""The built-in Image API as a WSGI application; it is mounted beside the Compute API."""

from __future__ import annotations

from oslo_config import cfg

from moorage.http import auth
from moorage.http.app import Application
from moorage.http.auth import Wsgi
from moorage.http.errors import GuidelineStyle, HttpError
from moorage.http.policy import Authorizer
from moorage.http.rules import of_routes
from moorage.images.api import ROUTES, VERSIONS
from moorage.images.catalogue import Catalogue
from moorage.images.contract import ImageNotFoundError

_STYLE = GuidelineStyle(undefined_code="image.undefined_code", codes_since=(2, 0))
_PUBLIC = frozenset({"", "/", "/versions"})


def build(conf: cfg.ConfigOpts, catalogue: Catalogue) -> Wsgi:
    api = Application(
        catalogue,
        ROUTES,
        VERSIONS,
        Authorizer(conf, of_routes(ROUTES)),
        style=_STYLE,
        longest_body=0,  # nothing can be written
        translations={ImageNotFoundError: lambda error: HttpError(404, str(error))},
    )
    return auth.middleware(conf, _PUBLIC, _STYLE)(api.wsgi)
