"""Reads from somebody who may be hostile: never more than was asked for, and not for ever."""

from __future__ import annotations

import socket
import time

from moorage.consoles.errors import ConsoleHungUpError, ConsoleUnreachableError


class BoundedReader:
    """All that is read and sent has one time limit, however little comes at a time."""

    def __init__(self, connected: socket.socket, ends_at: float) -> None:
        """`ends_at`: by the monotonic clock."""
        self._connected = connected
        self._ends_at = ends_at

    def through(self, connected: socket.socket) -> BoundedReader:
        """The rest of the time, for what the socket has become."""
        return BoundedReader(connected, self._ends_at)

    def remaining(self) -> float:
        seconds = self._ends_at - time.monotonic()
        if seconds <= 0:
            raise ConsoleUnreachableError("it takes too long")
        return seconds

    def exactly(self, count: int) -> bytes:
        """What follows stays where it is: it may be somebody else's."""
        found = b""
        while len(found) < count:
            self._connected.settimeout(self.remaining())
            more = self._connected.recv(count - len(found))
            if not more:
                raise ConsoleHungUpError("it hung up")
            found += more
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.exactly(size), "big")

    def send(self, data: bytes) -> None:
        self._connected.settimeout(self.remaining())
        self._connected.sendall(data)
