"""One connection of a browser: a page, or a WebSocket that becomes a console."""

from __future__ import annotations

import logging
import socket
import ssl
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from prometheus_client import Counter
from websockify.websocketserver import WebSocketRequestHandlerMixIn

from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles.errors import ConsoleInsecureError, ConsoleUnreachableError, NotAdmittedError
from moorage.consoles.greeting import Greeting
from moorage.consoles.relay import ConsoleSocket, Relay, RelayError
from moorage.consoles.sessions import ConsoleSession
from moorage.http import forwarded
from moorage.http.forwarded import Forwarded

if TYPE_CHECKING:
    from moorage.consoles.server import ConsoleServer

LOG = logging.getLogger(__name__)
OPENED = Counter("moorage_consoles_opened_total", "Requests to open a console, by outcome.", ["outcome"])

_HEADERS = {
    "content-security-policy": "default-src 'self'; connect-src *; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:",
    "referrer-policy": "no-referrer",  # the page's address has the token
    "x-content-type-options": "nosniff",
    "cache-control": "no-cache",
}


class ConsoleHandler(WebSocketRequestHandlerMixIn, BaseHTTPRequestHandler):  # type: ignore[misc]
    SocketClass = ConsoleSocket
    protocol_version = "HTTP/1.1"
    server_version = "Moorage"
    sys_version = ""
    timeout = 30
    """Seconds that a request may take to arrive, and a connection may be of no use."""

    server: ConsoleServer
    request: Any

    def setup(self) -> None:
        """In the connection's own thread, so that a slow handshake keeps nobody else waiting."""
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(self.timeout)
            self.request.do_handshake()
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        super().setup()

    def do_GET(self) -> None:
        """A page, for those who don't ask for a WebSocket."""
        path = urlsplit(self.path).path
        page = self.server.pages.find(path)
        if path == "/healthz":
            self._reply(200, "text/plain", b"ok\n")
        elif page is None:
            self._reply(404, "text/plain", b"There is no such page.\n")
        else:
            self._reply(200, page.content_type, page.content)

    do_HEAD = do_GET  # noqa: N815

    def handle_upgrade(self) -> None:
        """Who may not see the console, or could not, is told before anything is upgraded."""
        try:
            grant = self._admit()
            link = self.server.links.open(grant)
        except NotAdmittedError as error:
            OPENED.labels("refused").inc()
            LOG.info("%s may open no console: %s", self._client_name, error)
            return self._refuse(403)
        except ConsoleUnreachableError as error:
            OPENED.labels("insecure" if isinstance(error, ConsoleInsecureError) else "unreachable").inc()
            LOG.warning("a console can't be reached: %s", error)
            return self._refuse(502)
        client = self.request
        session = ConsoleSession(grant, client, link.socket)
        with link.socket, self.server.sessions.holding(session):
            OPENED.labels("opened").inc()
            self._client, self._link = client, link
            super().handle_upgrade()
        return None

    def handle_websocket(self) -> None:
        console, begun = self._link.socket, b""
        console.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            if self._link.is_greeted:
                begun = Greeting(self.request, self._client, self.timeout).run()
            Relay(self.request, self._client, console, begun).run()
        except (OSError, RelayError) as error:
            LOG.info("a console of %s ends: %s", self._client_name, error)
        self.request.end()

    def _admit(self) -> ConsoleGrant:
        told = self._forwarded()
        asked = self.headers.get("host", "") if told is None or told.host is None else told.host
        return self.server.admission.admit(
            self._token(),
            self.headers.get("origin"),
            urlsplit(f"//{asked}").hostname or "",
            None if told is None else told.scheme,
        )

    def _forwarded(self) -> Forwarded | None:
        """What a proxy in front says, if there is one."""
        proxies = self.server.proxies
        return forwarded.read(self.headers.get, proxies) if proxies else None

    @property
    def _client_name(self) -> str:
        told = self._forwarded()
        return str(self.client_address[0] if told is None or told.client is None else told.client)

    def _token(self) -> str:
        """In the query string; or in a cookie, as older pages put it."""
        given = parse_qs(urlsplit(self.path).query).get("token", [])
        if given:
            return given[-1]
        with suppress(CookieError):
            cookie = SimpleCookie(self.headers.get("cookie", "")).get("token")
            return "" if cookie is None else cookie.value
        return ""

    def _refuse(self, status: int) -> None:
        self._reply(status, "text/plain", b"")
        self.close_connection = True

    def _reply(self, status: int, content_type: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, "content-type": content_type}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Not a word: what is asked for has the token in it."""
