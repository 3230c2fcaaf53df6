"""Has links, and the log, tell of the address that clients use, where that is not the one we listen on."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from oslo_config import cfg

from moorage.core.config import ConfigError
from moorage.http import forwarded
from moorage.http.auth import StartResponse, Wsgi
from moorage.http.caller import Environ


def middleware(conf: cfg.ConfigOpts, inner: Wsgi, endpoint: str | None = None) -> Wsgi:
    """`endpoint` is what the operator has set as `public_endpoint`, for an API that has links."""
    if endpoint:
        inner = _Fixed(inner, endpoint)
    proxies = trusted_proxies(conf)
    return _Told(inner, proxies) if proxies else inner


def trusted_proxies(conf: cfg.ConfigOpts) -> int:
    """How many there are whose headers are believed."""
    return conf.http.trusted_proxies if conf.oslo_middleware.enable_proxy_headers_parsing else 0


class _Told:
    """By the proxy, in each request. What the client's own proxies may have said before is left aside."""

    def __init__(self, inner: Wsgi, proxies: int) -> None:
        self._inner = inner
        self._proxies = proxies

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        told = forwarded.read(
            lambda name: environ.get(f"HTTP_{name.upper().replace('-', '_')}"), self._proxies
        )
        if told.scheme is not None:
            environ["wsgi.url_scheme"] = told.scheme
        if told.host is not None:
            environ["HTTP_HOST"] = told.host
        if told.prefix is not None:
            environ["SCRIPT_NAME"] = told.prefix + environ.get("SCRIPT_NAME", "")
        if told.client is not None:
            environ["REMOTE_ADDR"] = told.client
        return self._inner(environ, start_response)


class _Fixed:
    """By the operator, once for all: whatever was asked, and by which way."""

    def __init__(self, inner: Wsgi, endpoint: str) -> None:
        address = urlsplit(endpoint)
        if address.scheme not in ("http", "https") or not address.netloc or address.query or address.fragment:
            raise ConfigError(
                f"public_endpoint is no address as https://cloud.example.com/compute: {endpoint}"
            )
        self._inner = inner
        self._scheme, self._host = address.scheme, address.netloc
        self._prefix = address.path.rstrip("/")

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        environ["wsgi.url_scheme"], environ["HTTP_HOST"] = self._scheme, self._host
        environ["SCRIPT_NAME"] = self._prefix
        return self._inner(environ, start_response)
