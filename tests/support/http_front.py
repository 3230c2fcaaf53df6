"""Puts a transport behind a port, so that programs can read from what tests have made of a service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler

from moorage.placement.client.transport import Transport
from tests.support.closing_server import ClosingHTTPServer


@contextmanager
def serving(transport: Transport) -> Iterator[str]:
    """The address at which requests are taken and passed on."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = transport.send("GET", self.path, None, dict(self.headers.items()))
            self.send_response(answer.status)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ClosingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
