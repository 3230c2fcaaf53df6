"""What a browser is told in a screen's place, when that one has had its handshake with us: that it need not
prove anything. Its own connection has TLS, and its token."""

from __future__ import annotations

import select
import socket
import ssl
import time

from moorage.consoles.relay import ConsoleSocket, RelayError
from moorage.consoles.vencrypt import VERSION

_NONE = b"\x01"
_OK = bytes(4)


class Greeting:
    def __init__(self, websocket: ConsoleSocket, client: socket.socket, seconds: float) -> None:
        """`client` is what the WebSocket speaks through."""
        self._websocket = websocket
        self._client = client
        self._ends_at = time.monotonic() + seconds
        self._heard = b""

    def run(self) -> bytes:
        """What the browser has said beyond it, which is the guest's; RelayError if it does not keep to it."""
        self._client.setblocking(False)
        self._send(VERSION)
        if (said := self._receive(len(VERSION))) != VERSION:
            raise RelayError(f"it speaks {said!r}, and not RFB 3.8")
        self._send(bytes([1]) + _NONE)
        if (chosen := self._receive(1)) != _NONE:
            raise RelayError(f"it has chosen security type {chosen[0]}, which was not offered")
        self._send(_OK)
        return self._heard

    def _send(self, data: bytes) -> None:
        while True:
            try:
                self._websocket.send(data)
                return
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT)

    def _receive(self, count: int) -> bytes:
        while len(self._heard) < count:
            try:
                data = self._websocket.recv()
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN)
                continue
            if data is None:
                raise RelayError("it ended before it began")
            self._heard += data
        found, self._heard = self._heard[:count], self._heard[count:]
        return found

    def _wait(self, event: int) -> None:
        self._websocket.require_moderate()
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise RelayError("it takes too long to begin")
        poll = select.poll()
        poll.register(self._client, event)
        poll.poll(left * 1000)
