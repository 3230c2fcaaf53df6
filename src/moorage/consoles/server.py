"""The proxy to consoles: a thread for each connection, so that a slow one keeps nobody else waiting."""

from __future__ import annotations

import logging
import socket
import socketserver
import sys
import threading
from contextlib import suppress
from typing import Any

from moorage.bus.contract import AskingSide
from moorage.consoles.admission import Admission
from moorage.consoles.handler import ConsoleHandler
from moorage.consoles.links import ConsoleLinks
from moorage.consoles.pages import Pages
from moorage.consoles.sessions import Sessions
from moorage.consoles.settings import ConsoleSettings
from moorage.db.database import Database

LOG = logging.getLogger(__name__)
_QUEUE = 128


def listener(listen: str, port: int) -> socket.socket:
    """What a proxy takes connections from, once it runs; OSError if it can't be had."""
    family = socket.AF_INET6 if ":" in listen else socket.AF_INET
    return socket.create_server((listen, port), family=family, backlog=_QUEUE)


class ConsoleServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(
        self, settings: ConsoleSettings, database: Database, agents: AskingSide, listening: socket.socket
    ) -> None:
        self.pages = Pages()
        self.admission = Admission(database, agents, settings)
        self.links = ConsoleLinks(settings)
        self.sessions = Sessions(database, settings.check_interval)
        self.proxies = settings.proxies
        self._files = settings.tls
        self._tls = None if self._files is None else self._files.context()
        self._free = threading.Semaphore(settings.max_connections)
        self._thread = threading.Thread(target=self.serve_forever, name="console-proxy", daemon=True)
        super().__init__(listening.getsockname()[:2], ConsoleHandler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        self.sessions.start()
        self._thread.start()

    def stop(self) -> None:
        """Take no more connections, and close those that there are."""
        self.shutdown()
        self.server_close()
        self.sessions.stop()

    def reload(self) -> None:
        """Take the certificate as it is now; ConfigError, and the old one stays, if it is of no use."""
        if self._files is not None:
            self._tls = self._files.context()

    def get_request(self) -> tuple[Any, Any]:
        connected, address = super().get_request()
        if self._tls is None:
            return connected, address
        return self._tls.wrap_socket(connected, server_side=True, do_handshake_on_connect=False), address

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            LOG.warning("too many connections to consoles; one of %s is refused", client_address[0])
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def shutdown_request(self, request: Any) -> None:
        with suppress(OSError):
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Those who hang up, or speak no TLS, are no errors of ours."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError):
            LOG.info("a connection of %s ended: %s", client_address[0], error)
        else:
            LOG.exception("a connection of %s failed", client_address[0])
