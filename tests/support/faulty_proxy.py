"""A proxy in front of a real service that fails when it is told to: outages, as a client sees them."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

from tests.support.closing_server import ClosingHTTPServer

_LONGEST = 240.0
"""Seconds for which a request is held at most, whatever the test does."""
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "date", "server"}


@dataclass(frozen=True)
class Fault:
    """What happens to requests, instead of an answer or to it."""

    status: int = 0
    """Answer with this one; 0 hangs up."""
    body: bytes = b""
    works: bool = False
    """The service gets the request all the same: only its answer is lost, or late if there is a delay."""
    after: int = 0
    """So many requests get through before it begins."""
    times: int = 1_000_000
    """So many fail; then all is well again."""
    delay: float = 0.0
    """Seconds before anything happens."""
    cut: bool = False
    """The answer is the service's, but ends in its middle."""
    until: threading.Event | None = None
    """Nothing happens before this is set, either."""
    method: str = ""
    path: str = ""
    body_has: bytes = b""
    """Only requests with this method, with this in their path and with this in their body, fail."""
    changes_only: bool = False
    """Only requests that change something fail."""

    @property
    def hangs_up(self) -> bool:
        """Whether there is no answer at all."""
        late = self.delay > 0 or self.until is not None
        return self.status == 0 and not self.cut and not (self.works and late)

    def concerns(self, method: str, path: str, body: bytes) -> bool:
        if self.changes_only and method == "GET":
            return False
        return self.method in ("", method) and self.path in path and self.body_has in body


HUNG_UP = Fault()
ERROR = Fault(500, b'{"errors": [{"status": 500, "detail": "it broke"}]}')
GARBAGE = Fault(200, b"<html>Welcome to nginx!</html>")
CONFLICT = Fault(
    409,
    json.dumps(
        {"errors": [{"status": 409, "detail": "changed", "code": "placement.concurrent_update"}]}
    ).encode(),
    method="PUT",
)
LOST_ANSWER = Fault(works=True, method="PUT")
SLOW = Fault(works=True, delay=1.5)


class FaultyProxy:
    def __init__(self, target: int) -> None:
        """`target` is the port of the service."""
        self.target = target
        self.requests: list[tuple[str, str]] = []
        """The methods and paths that reached us, in order."""
        self.answered: list[tuple[str, str, int]] = []
        """The methods, paths and statuses of what was answered, in order."""
        self.struck = 0
        """So many requests have met the fault of now."""
        self._fault: Fault | None = None
        self._seen = 0
        self._lock = threading.Lock()
        self._server = ClosingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port: int = self._server.server_address[1]

    @property
    def writes(self) -> list[str]:
        """The paths of requests that change something."""
        reading = ("/members", "/aggregates/providers")
        return [
            path
            for method, path in self.requests
            if method in ("PUT", "DELETE") or (method == "POST" and not path.endswith(reading))
        ]

    def fail(self, fault: Fault | None) -> None:
        """From now on; None ends it."""
        with self._lock:
            self._fault, self._seen, self.struck = fault, 0, 0

    def start(self) -> None:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self, method: str, path: str, body: bytes) -> Fault | None:
        with self._lock:
            self.requests.append((method, path))
            fault = self._fault
            if fault is None or not fault.concerns(method, path, body):
                return None
            self._seen += 1
            strikes = fault.after < self._seen <= fault.after + fault.times
            self.struck += strikes
            return fault if strikes else None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                fault = proxy._next(self.command, self.path, body)
                if fault is not None:
                    time.sleep(fault.delay)
                    if fault.until is not None:
                        fault.until.wait(_LONGEST)
                if fault is None or fault.works or fault.cut:
                    status, headers, answer = proxy._pass_on(
                        self.command, self.path, dict(self.headers), body
                    )
                if fault is not None and fault.hangs_up:
                    self.close_connection = True
                    return
                if fault is not None and not (fault.works or fault.cut):
                    status, headers, answer = fault.status, {"content-type": "application/json"}, fault.body
                proxy.answered.append((self.command, self.path, status))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                if fault is not None and fault.cut:
                    self.close_connection = True
                    answer = answer[: len(answer) // 2]
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """The test shows what it did."""

        return Handler

    def _pass_on(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)
        try:
            sent = {name: value for name, value in headers.items() if name.lower() not in _HOP}
            connection.request(method, path, body or None, sent)
            reply = connection.getresponse()
            kept = {name: value for name, value in reply.getheaders() if name.lower() not in _HOP}
            return reply.status, kept, reply.read()
        finally:
            connection.close()


@contextmanager
def in_front_of(port: int) -> Iterator[FaultyProxy]:
    proxy = FaultyProxy(port)
    proxy.start()
    yield proxy
    proxy.stop()
