"""Agents have credentials for Placement and images; whoever finds them on a host gets nowhere here."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from moorage.compute_api.errors import STYLE
from moorage.core import context
from moorage.http.auth import StartResponse, Wsgi
from moorage.http.caller import Caller, Environ
from moorage.http.errors import HttpError

LOG = logging.getLogger(__name__)


class AgentsRefused:
    """Whatever policies say, and whatever other roles somebody gave them by mistake."""

    def __init__(self, inner: Wsgi) -> None:
        self._inner = inner

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        caller = Caller.from_environ(environ)
        if not caller.is_agent:
            return self._inner(environ, start_response)
        asked = f"{environ.get('REQUEST_METHOD')} {environ.get('PATH_INFO')}"
        LOG.warning("refused: %r, which is an agent, asked for %r", caller.user_id, asked)
        refusal = HttpError(403, "The credentials of an agent are of no use here.")
        kind, body = STYLE.render(refusal, None, context.current().request_id, lambda _media_type: True)
        start_response("403 Forbidden", [("Content-Type", kind), ("Content-Length", str(len(body)))])
        return [body]
