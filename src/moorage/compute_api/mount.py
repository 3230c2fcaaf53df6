"""Where the API is mounted: version documents at the top, the API itself below `/v2.1` and `/v2`.

Older catalogues put the project's id into the URL; the routes don't know about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from wsgiref.util import application_uri

import msgspec

from moorage.compute_api import versions
from moorage.compute_api.errors import STYLE
from moorage.core import context
from moorage.http.auth import StartResponse, Wsgi
from moorage.http.caller import Caller, Environ
from moorage.http.errors import HttpError

_PROJECT = re.compile(r"^/([0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?=/)")
_VERSIONED = re.compile(r"^/(v2\.1|v2)(/.*)?$")
_ASKING = ("HTTP_OPENSTACK_API_VERSION", "HTTP_X_OPENSTACK_NOVA_API_VERSION")


class Mount:
    """`api` is behind the login; `others` are applications at paths of their own."""

    def __init__(self, api: Wsgi, others: Mapping[str, Wsgi]) -> None:
        self._api = api
        self._others = others

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        for mounted, application in self._others.items():
            if path == mounted or path.startswith(f"{mounted}/"):
                _descend(environ, mounted)
                return application(environ, start_response)
        found = _VERSIONED.match(path)
        prefix = application_uri(environ).rstrip("/")
        if found is None:
            if path in ("", "/"):
                return _send(start_response, "200 OK", versions.all_versions(prefix))
            return _send(start_response, "300 Multiple Choices", versions.choices(prefix, path))
        version, rest = found[1], found[2]
        if rest in (None, "", "/"):
            return _send(start_response, "200 OK", versions.one_version(prefix, version))
        if version == "v2":
            for header in _ASKING:
                environ.pop(header, None)
        _descend(environ, f"/{version}")
        return self._api(environ, start_response)


class ProjectInPath:
    """Takes a project's id out of the URL, after a look whether it is the caller's."""

    def __init__(self, inner: Wsgi) -> None:
        self._inner = inner

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        found = _PROJECT.match(environ.get("PATH_INFO", ""))
        if found is not None:
            own = Caller.from_environ(environ).project_id
            if found[1] != own:
                detail = (
                    f"Malformed request URL: URL's project_id '{found[1]}' doesn't match "
                    f"Context's project_id '{own}'"
                )
                error = HttpError(400, detail)
                refusal = STYLE.render(error, None, context.current().request_id, lambda _media_type: True)
                return _send(start_response, "400 Bad Request", refusal.body)
            _descend(environ, f"/{found[1]}")
        return self._inner(environ, start_response)


def _descend(environ: Environ, mounted: str) -> None:
    environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + mounted
    environ["PATH_INFO"] = environ["PATH_INFO"][len(mounted) :]


def _send(start_response: StartResponse, status: str, document: Any) -> Iterable[bytes]:
    body = document if isinstance(document, bytes) else msgspec.json.encode(document)
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
