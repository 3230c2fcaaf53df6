"""A WebSocket client for tests: websockify's own protocol, on a socket that waits."""

from __future__ import annotations

import select
import socket
import ssl
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from websockify.websocket import WebSocket

from tests.support.processes import wait_until


class Refused(Exception):
    """Anything but an upgrade; its text is the first line of the answer."""


class WebSocketClient:
    def __init__(
        self,
        url: str,
        origin: str | None = None,
        context: ssl.SSLContext | None = None,
        timeout: float = 10.0,
    ) -> None:
        """`timeout` is for each answer, or part of one."""
        self._timeout = timeout
        parts = urlsplit(url)
        raw: Any = socket.create_connection((parts.hostname, parts.port), timeout)
        self._socket = raw if context is None else context.wrap_socket(raw, server_hostname=parts.hostname)
        lines = [
            f"GET {parts.path or '/'}?{parts.query} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Protocol: binary",
            *([] if origin is None else [f"Origin: {origin}"]),
        ]
        self._socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = self._socket.recv(1)
            if not more:
                raise Refused("hung up")
            head += more
        if not head.startswith(b"HTTP/1.1 101 "):
            self._socket.close()
            raise Refused(head.split(b"\r\n")[0].decode())
        self._websocket: Any = WebSocket()
        self._websocket.client, self._websocket.socket = True, self._socket
        self._websocket._state = "done"

    def send(self, data: bytes) -> None:
        while True:
            try:
                self._websocket.send(data)
                return
            except ssl.SSLWantWriteError:  # a part of it; the rest follows
                continue

    def receive(self, count: int) -> bytes:
        """At least so many bytes, or all until the other side ends it."""
        found = b""
        while len(found) < count:
            try:
                data = self._websocket.recv()
            except ssl.SSLWantReadError:  # the beginning of a frame
                continue
            if data is None:
                break
            found += data
        return found

    def exchange(self, words: bytes) -> bytes:
        """Send all of it, and receive as much meanwhile.

        By one thread: when two use one connection of TLS, each may take for its own what OpenSSL says to the
        other, such as an end that is none.
        """
        self._socket.settimeout(0)
        found, sent = b"", False
        while not sent or len(found) < len(words):
            if not sent:
                with suppress(ssl.SSLWantWriteError):  # a part of it; the rest follows
                    self._websocket.send(words)
                    sent = True
            try:
                data = self._websocket.recv()
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN if sent else select.POLLIN | select.POLLOUT)
                continue
            if data is None:
                break
            found += data
        self._socket.settimeout(self._timeout)
        return found

    def _wait(self, events: int) -> None:
        poll = select.poll()
        poll.register(self._socket, events)
        if not poll.poll(self._timeout * 1000):
            raise TimeoutError("neither a word came nor could one be sent")

    def is_closed(self) -> bool:
        """Whether the other side has ended it; what it sent before is thrown away."""
        if self._websocket.socket is None:
            return True
        self._socket.settimeout(0.05)
        try:
            ended = self._websocket.recv() is None
        except (TimeoutError, ssl.SSLWantReadError):
            ended = False
        except OSError:
            ended = True
        if not ended:
            self._socket.settimeout(self._timeout)
        return ended

    def await_end(self, timeout: float = 10.0) -> None:
        wait_until(self.is_closed, "the end of the connection", timeout)

    def close(self) -> None:
        self._socket.close()
