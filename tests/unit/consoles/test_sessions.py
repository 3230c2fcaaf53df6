"""Sessions that are cut: the connection ends, and TLS with it, not before it."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles.sessions import ConsoleSession
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from tests.support.certificates import Authority

GRANT = ConsoleGrant(1, "s", "h", "n", ConsoleType.SERIAL, ConsoleAddress("127.0.0.1", 1), "http://p")


def test_a_thread_that_still_writes_writes_nothing_in_the_clear(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.sign("here")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(pair.cert, pair.key)
    asking = ssl.create_default_context(cafile=str(authority.cert))
    here, there = socket.socketpair()
    browser, other = socket.socketpair()
    inside = serving.wrap_socket(there, server_side=True, do_handshake_on_connect=False)
    answering = threading.Thread(target=inside.do_handshake)
    answering.start()
    with asking.wrap_socket(here, server_hostname="here") as console, inside, browser, other:
        answering.join(10)
        ConsoleSession(GRANT, browser, console).cut()
        assert console.version(), "a socket without it would send what it is given as it is"
        with pytest.raises(OSError):
            console.send(b"secret")
        assert inside.recv(100) == b""
