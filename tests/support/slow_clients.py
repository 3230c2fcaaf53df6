"""Clients that hold connections and do next to nothing with them."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

_DRIP_SECONDS = 0.5


class Manner(Enum):
    """How a client keeps a server waiting."""

    SILENT = "connects, and says nothing"
    SLOW_HEADERS = "a byte of a header now and then"
    SLOW_BODY = "a byte of the body now and then"
    SHORT_BODY = "promises more than it sends"
    NOT_READING = "asks again and again, and reads no answer"
    IDLE = "keeps a connection after an answer"


_HEADERS = b"X-Auth-Token: admin\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@contextmanager
def holding(port: int, manner: Manner, count: int, path: str) -> Iterator[None]:
    """So many of them at once, until the end of the block."""
    ended = threading.Event()
    clients = [_connected(port, manner, path) for _ in range(count)]
    dripping = threading.Thread(target=_drip, args=(clients, manner, path, ended), daemon=True)
    dripping.start()
    try:
        yield
    finally:
        ended.set()
        dripping.join(10)
        for client in clients:
            client.close()


def _connected(port: int, manner: Manner, path: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), 10)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    if manner is Manner.SLOW_HEADERS:
        client.sendall(f"GET {path} HTTP/1.1\r\n".encode() + _HEADERS + b"X-More: ")
    elif manner in (Manner.SLOW_BODY, Manner.SHORT_BODY):
        client.sendall(f"POST {path} HTTP/1.1\r\n".encode() + _HEADERS + b"Content-Length: 1000\r\n\r\n{")
    elif manner in (Manner.NOT_READING, Manner.IDLE):
        client.sendall(f"GET {path} HTTP/1.1\r\n".encode() + _HEADERS + b"\r\n")
        if manner is Manner.IDLE:
            client.recv(4096)
    return client


def _drip(clients: list[socket.socket], manner: Manner, path: str, ended: threading.Event) -> None:
    again = f"GET {path} HTTP/1.1\r\n".encode() + _HEADERS + b"\r\n"
    what = {Manner.SLOW_HEADERS: b"x", Manner.SLOW_BODY: b" ", Manner.NOT_READING: again}.get(manner, b"")
    while what and not ended.wait(_DRIP_SECONDS):
        for client in clients:
            with contextlib.suppress(OSError):  # the server may have had enough
                client.settimeout(0.01)
                client.send(what)
