"""What systemd is told by a process that it has started (`Type=notify`)."""

from __future__ import annotations

import os
import socket
import threading
import time

_SOCKET = "NOTIFY_SOCKET"
_PAUSE = 0.05


def tell_ready() -> None:
    """What others wait for is there. Of no effect where nobody listens."""
    where = os.environ.get(_SOCKET)
    if not where:
        return
    address = f"\0{where[1:]}" if where.startswith("@") else where
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.connect(address)
        told.sendall(b"READY=1")


def tell_ready_once_answering(host: str, port: int) -> None:
    """For a server whose workers begin to listen by themselves, in their own time."""
    if os.environ.get(_SOCKET):
        threading.Thread(target=_wait_and_tell, args=(host, port), name="systemd", daemon=True).start()


def _wait_and_tell(host: str, port: int) -> None:
    """For as long as systemd has patience: it ends a service that is never ready."""
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            time.sleep(_PAUSE)
        else:
            return tell_ready()
