"""The serial lines of simulated servers: whoever connects is greeted, and then hears itself."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_GREETING = "server {}: what you type comes back.\r\n"


class SerialLines:
    """One a server, from the first time that somebody asks for it until the server stops."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, _SerialLine] = {}

    def port(self, server_uuid: str) -> int:
        with self._lock:
            if server_uuid not in self._lines:
                self._lines[server_uuid] = _SerialLine(server_uuid)
            return self._lines[server_uuid].port

    def hang_up(self, server_uuid: str) -> None:
        with self._lock:
            line = self._lines.pop(server_uuid, None)
        if line is not None:
            line.close()

    def close(self) -> None:
        for server_uuid in list(self._lines):
            self.hang_up(server_uuid)


class _SerialLine:
    def __init__(self, server_uuid: str) -> None:
        self._greeting = _GREETING.format(server_uuid).encode()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._sockets = {self._listening}
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._serve, name="serial-line", daemon=True).start()

    def close(self) -> None:
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # which wakes whoever waits for it
            each.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                self._sockets.add(caller)
                threading.Thread(target=self._echo, args=(caller,), name="serial-line", daemon=True).start()

    def _echo(self, caller: socket.socket) -> None:
        with suppress(OSError), caller:
            caller.sendall(self._greeting)
            while data := caller.recv(4096):
                caller.sendall(data)
        self._sockets.discard(caller)
