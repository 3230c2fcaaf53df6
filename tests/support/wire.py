"""A thin HTTP/1.1 client on a kept-alive socket.

A load client that costs more than the server measures itself; this one spends some tens of
microseconds a request, and shows the raw bytes that came back, which tests of bad input need.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

JSON = "application/json"


class ConnectionLostError(Exception):
    """The server closed the connection before a whole answer had come."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection to one server. Not shared between threads."""

    def __init__(
        self,
        port: int,
        *,
        version: str = "1.39",
        token: str = "admin",
        timeout: float = 120.0,
        once: bool = False,
    ) -> None:
        self.once = once
        self.port = port
        self.version = version
        self.token = token
        self.timeout = timeout
        self._socket: socket.socket | None = None

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        version: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request; `body` is JSON-encoded unless it is bytes already."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "X-Auth-Token": self.token,
            "OpenStack-API-Version": f"placement {version or self.version}",
            "Accept": JSON,
        }
        if content:
            sent["Content-Type"] = JSON
        if content or method in ("PUT", "POST"):
            sent["Content-Length"] = str(len(content))
        sent.update(headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        return self.exchange(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + content, method)

    def get(self, path: str, version: str | None = None) -> Reply:
        return self.request("GET", path, version=version)

    def put(self, path: str, body: Any = None, version: str | None = None) -> Reply:
        return self.request("PUT", path, body, version=version)

    def post(self, path: str, body: Any = None, version: str | None = None) -> Reply:
        return self.request("POST", path, body, version=version)

    def delete(self, path: str, version: str | None = None) -> Reply:
        return self.request("DELETE", path, version=version)

    def exchange(self, message: bytes, method: str = "GET") -> Reply:
        """Send raw bytes. A kept-alive connection that the server had dropped meanwhile is opened anew.

        With `once`, nothing is ever sent a second time: the server may have done it before it died.
        """
        fresh = self._socket is None or self.once
        try:
            return self._exchange(message, method)
        except (ConnectionLostError, ConnectionError):
            self.close()
            if fresh:
                raise
        return self._exchange(message, method)

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
            self._socket = None

    def _exchange(self, message: bytes, method: str) -> Reply:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), self.timeout)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = self._socket
        connection.sendall(message)
        buffer = b""
        while (end := buffer.find(b"\r\n\r\n")) < 0:
            buffer += _receive(connection)
        status_line, *lines = buffer[:end].decode("latin-1").split("\r\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status = int(status_line.split(" ", 2)[1])
        rest = buffer[end + 4 :]
        if method == "HEAD" or status in (204, 304):
            body = b""
        elif headers.get("transfer-encoding", "").lower() == "chunked":
            body = _read_chunks(connection, rest)
        elif "content-length" in headers:
            body = _read_exactly(connection, rest, int(headers["content-length"]))
        else:
            body = _read_to_end(connection, rest)
            self.close()
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Reply(status, headers, body)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _receive(connection: socket.socket) -> bytes:
    data = connection.recv(262144)
    if not data:
        raise ConnectionLostError
    return data


def _read_exactly(connection: socket.socket, start: bytes, length: int) -> bytes:
    if len(start) >= length:
        return start
    parts, have = [start], len(start)
    while have < length:
        data = _receive(connection)
        parts.append(data)
        have += len(data)
    return b"".join(parts)


def _read_to_end(connection: socket.socket, start: bytes) -> bytes:
    parts = [start]
    while data := connection.recv(262144):
        parts.append(data)
    return b"".join(parts)


def _read_chunks(connection: socket.socket, buffer: bytes) -> bytes:
    parts: list[bytes] = []
    while True:
        while (end := buffer.find(b"\r\n")) < 0:
            buffer += _receive(connection)
        size = int(buffer[:end].split(b";")[0], 16)
        buffer = _read_exactly(connection, buffer[end + 2 :], size + 2)
        if size == 0:
            return b"".join(parts)
        parts.append(buffer[:size])
        buffer = buffer[size + 2 :]
