"""Carries bytes between a WebSocket and a console, in one thread, and neither faster than the other reads."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from websockify.websocketserver import HttpWebSocket

_CHUNK = 65_536
_MOST_WAITING = 262_144
"""Bytes that wait for a console that does not read; its user's next ones stay where they are."""
_LARGEST_MESSAGE = 1_048_576
_LOOK_SECONDS = 60.0
_BINARY = "binary"


class RelayError(Exception):
    """Somebody does not keep to the protocol."""


class ConsoleSocket(HttpWebSocket):  # type: ignore[misc]
    _previous_sendmsg: bytes | None
    """What has been sent in part, and has to be sent again."""

    def select_subprotocol(self, protocols: Sequence[str]) -> str:
        return next((name for name in protocols if name.strip() == _BINARY), "")

    def handle_ping(self, data: bytes) -> None:
        """Nobody waits for the answer: if something else is on its way, that is a sign of life, too."""
        if self._previous_sendmsg is not None:
            return
        try:
            self.pong(data)
        except ssl.SSLWantWriteError:
            self._previous_sendmsg = None  # it goes out with what is sent next

    def end(self) -> None:
        """Say goodbye, if that can be said at once, and close."""
        if self.socket is not None:
            with suppress(OSError):
                self.close()

    @property
    def unfinished(self) -> int:
        """Bytes of a message that is not there as a whole."""
        return len(self._recv_buffer) + len(self._partial_msg)

    def require_moderate(self) -> None:
        if self.unfinished > _LARGEST_MESSAGE:
            raise RelayError(f"a message of more than {_LARGEST_MESSAGE} bytes")


class Relay:
    """Whoever shuts down one of the two sockets ends it."""

    def __init__(
        self,
        websocket: ConsoleSocket,
        client: socket.socket,
        console: socket.socket,
        to_console: bytes = b"",
    ) -> None:
        """`client` is what the WebSocket speaks through; `to_console`, what it has said already."""
        self._websocket: Any = websocket
        self._client = client
        self._console = console
        self._to_console = bytearray(to_console)
        self._to_client = b""
        self._writing_needs = select.POLLOUT
        self._reading_needs = select.POLLIN
        """What the console's socket has to be ready for: TLS may have to read before it writes, and so on."""

    def run(self) -> None:
        """Until one of them ends it."""
        self._client.setblocking(False)
        self._console.setblocking(False)
        while self._take_turn():
            self._wait()

    def _take_turn(self) -> bool:
        """Carry what can be carried now; False at the end."""
        if not self._read_client():
            return False
        self._send_to_console()
        if not self._to_client and not self._read_console():
            return False
        self._send_to_client()
        return True

    def _read_client(self) -> bool:
        while len(self._to_console) < _MOST_WAITING:
            try:
                data = self._websocket.recv()
            except ssl.SSLWantReadError:
                break
            except ssl.SSLWantWriteError:  # it has said goodbye, and does not wait for ours
                return False
            if data is None:
                return False
            self._to_console += data
        self._websocket.require_moderate()
        return True

    def _send_to_console(self) -> None:
        self._writing_needs = select.POLLOUT
        try:
            while self._to_console:
                del self._to_console[: self._console.send(self._to_console)]
        except ssl.SSLWantReadError:
            self._writing_needs = select.POLLIN
        except (BlockingIOError, ssl.SSLWantWriteError):
            pass

    def _read_console(self) -> bool:
        """More than a record of TLS at once, so that none stays where a poll does not see it."""
        self._reading_needs = select.POLLIN
        try:
            self._to_client = self._console.recv(_CHUNK)
        except ssl.SSLWantWriteError:
            self._reading_needs = select.POLLOUT
            return True
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        return bool(self._to_client)

    def _send_to_client(self) -> None:
        if self._to_client:
            try:
                self._websocket.send(self._to_client)
                self._to_client = b""
            except ssl.SSLWantWriteError:
                pass  # the same has to be sent again

    def _wait(self) -> None:
        """Until one of them can go on."""
        client = select.POLLIN if len(self._to_console) < _MOST_WAITING else 0
        console = self._writing_needs if self._to_console else 0
        if self._to_client:
            client |= select.POLLOUT
        else:
            console |= self._reading_needs
        poll = select.poll()
        poll.register(self._client, client)
        poll.register(self._console, console)
        poll.poll(_LOOK_SECONDS * 1000)
