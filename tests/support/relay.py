"""A way from another network to a port of this machine's loopback: for what runs in a namespace."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK = 1 << 16


@contextmanager
def relay(address: str, port: int) -> Iterator[None]:
    """Whoever connects to the port at this address reaches that of 127.0.0.1, as long as somebody listens."""
    with socket.create_server((address, port)) as listening:
        threading.Thread(target=_accept, args=(listening, port), daemon=True).start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _accept(listening: socket.socket, port: int) -> None:
    while True:
        try:
            near, _ = listening.accept()
        except OSError:  # the end
            return
        try:
            far = socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            near.close()
            continue
        far.settimeout(None)
        for source, target in ((near, far), (far, near)):
            threading.Thread(target=_pass_on, args=(source, target), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Both directions end together: nobody here needs half a connection."""
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
