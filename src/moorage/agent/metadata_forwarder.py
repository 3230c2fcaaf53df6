"""Where guests of the built-in networks ask for their metadata: this host's agent vouches for them.

It listens at 169.254.169.254 itself, knows a guest by the address that its packets come from (which the rules
of its port keep it from forging), and asks the control plane as Neutron's metadata agents do.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import requests
from prometheus_client import Counter

from moorage.metadata import signature

LOG = logging.getLogger(__name__)
FORWARDED = Counter("moorage_agent_metadata_total", "Requests of guests for metadata, by status.", ["status"])

ADDRESS, PORT = "169.254.169.254", 80
_FREEBIND = 15
"""Linux: an address may be listened on before it is there. This one comes with the first network."""
_LONGEST_BODY = 16_384
_SECONDS = 20.0
_MOST_AT_ONCE = 64


@dataclass(frozen=True)
class GuestOnHost:
    server_uuid: str
    host: str


@dataclass(frozen=True)
class ForwarderSettings:
    url: str
    """Of the metadata service."""
    secret: str
    listen: str = ADDRESS
    port: int = PORT
    cafile: str | None = None
    """Who has to have signed its certificate; the system's authorities, if None."""
    certfile: str | None = None
    """What is shown to it."""


class MetadataForwarder:
    """OSError if it can't listen."""

    def __init__(self, settings: ForwarderSettings, find: Callable[[str], GuestOnHost | None]) -> None:
        """`find` tells whose address it is."""
        self._server = _Server(settings, find)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metadata", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, settings: ForwarderSettings, find: Callable[[str], GuestOnHost | None]) -> None:
        self.settings = settings
        self.find = find
        self._free = threading.Semaphore(_MOST_AT_ONCE)
        super().__init__((settings.listen, settings.port), _Handler)

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_IP, _FREEBIND, 1)
        super().server_bind()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOG.info("a guest at %s hung up", client_address[0], exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10
    protocol_version = "HTTP/1.1"
    server_version = "Moorage"
    sys_version = ""

    def do_GET(self) -> None:
        self._forward(b"")

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > _LONGEST_BODY:
            self.close_connection = True
            return self._reply(413, "text/plain", b"")
        return self._forward(self.rfile.read(int(length)))

    def _forward(self, body: bytes) -> None:
        address = self.client_address[0]
        guest = self.server.find(address)
        if guest is None:
            LOG.warning("metadata was asked from %s, which is no guest of this host", address)
            return self._reply(404, "text/plain", b"")
        settings = self.server.settings
        headers = {
            signature.INSTANCE_ID: guest.server_uuid,
            signature.SIGNATURE: signature.sign(settings.secret, guest.server_uuid),
            signature.HOST: guest.host,
            signature.FORWARDED_FOR: address,
        }
        try:
            answer = requests.request(
                self.command,
                f"{settings.url.rstrip('/')}/{self.path.lstrip('/')}",
                headers=headers,
                data=body or None,
                timeout=_SECONDS,
                verify=settings.cafile or True,
                cert=settings.certfile,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            LOG.warning("the metadata service does not answer: %s", error)
            return self._reply(503, "text/plain", b"")
        return self._reply(
            answer.status_code, answer.headers.get("content-type", "text/plain"), answer.content
        )

    def _reply(self, status: int, content_type: str, content: bytes) -> None:
        FORWARDED.labels(str(status)).inc()
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Not a word: guests may ask as often as they like."""
