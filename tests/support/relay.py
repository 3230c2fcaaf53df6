"""A way from the loopback of a namespace to that of this machine, port by port."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.namespaces import Namespace

_CHUNK = 1 << 16


@contextmanager
def relay(inside: Namespace, port: int) -> Iterator[None]:
    """Whoever connects to the port of 127.0.0.1 there reaches ours, as long as somebody listens. So what is
    written in configurations and catalogues is true in both places."""
    with inside.call(lambda: socket.create_server(("127.0.0.1", port))) as listening:
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
