"""The first words with a guest's screen: a host may say anything, at any speed, and costs a bounded time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.consoles import vencrypt
from moorage.consoles.bounded_reader import BoundedReader
from moorage.consoles.errors import ConsoleInsecureError, ConsoleUnreachableError
from moorage.consoles.vencrypt import NoTlsOfferedError
from tests.support.examples import examples

VERSION = b"RFB 003.008\n"
TYPES = b"\x03\x01\x02\x13"
VENCRYPT = b"\x00\x02\x00"
SUBTYPES = b"\x02" + (258).to_bytes(4, "big") + (260).to_bytes(4, "big")
ACCEPTED = b"\x01"
BEFORE_TLS = VERSION + TYPES + VENCRYPT + SUBTYPES + ACCEPTED
RESULT = bytes(4)
ANSWERS = VERSION + b"\x13" + b"\x00\x02" + (260).to_bytes(4, "big")

Host = Callable[[socket.socket], None]


def says(talk: bytes, *, hangs_up: bool = True) -> Host:
    def speak(there: socket.socket) -> None:
        there.sendall(talk)
        if hangs_up:
            there.shutdown(socket.SHUT_WR)

    return speak


def shaken(host: Host, seconds: float = 5.0) -> tuple[bytes, bool]:
    """What the host was told, and whether TLS was begun; in these tests TLS is as good as nothing."""
    here, there = socket.socketpair()
    begun: list[bool] = []

    def wrap(connected: socket.socket) -> ssl.SSLSocket:
        begun.append(True)
        return cast("ssl.SSLSocket", connected)

    with here, there:
        host(there)
        vencrypt.secure(here, BoundedReader(here, time.monotonic() + seconds), wrap)
        here.shutdown(socket.SHUT_WR)
        return there.recv(1000), bool(begun)


def test_it_chooses_tls_with_certificates_and_is_told_that_all_is_well() -> None:
    assert shaken(says(BEFORE_TLS + RESULT)) == (ANSWERS, True)


def test_what_comes_after_it_is_left_to_others() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(BEFORE_TLS + RESULT + b"more")
        reader = BoundedReader(here, time.monotonic() + 5)
        vencrypt.secure(here, reader, lambda connected: cast("ssl.SSLSocket", connected))
        assert here.recv(100) == b"more"


@pytest.mark.parametrize("length", range(len(BEFORE_TLS + RESULT)))
def test_a_host_that_hangs_up_anywhere(length: int) -> None:
    with pytest.raises(ConsoleUnreachableError, match="hung up"):
        shaken(says((BEFORE_TLS + RESULT)[:length]))


@pytest.mark.parametrize(
    ("talk", "told"),
    [
        (b"RFB 003.003\n", "it speaks RFB 003.003"),
        (b"RFB 003.007\n", "it speaks RFB 003.007"),
        (VERSION + b"\x01\x01", r"security types are \[1\]"),
        (VERSION + b"\x02\x02\x10", r"security types are \[2, 16\]"),
        (VERSION + TYPES + b"\x00\x01", "VeNCrypt 0.1"),
        (VERSION + TYPES + VENCRYPT + b"\x00", r"VeNCrypt's types \[\]"),
        (VERSION + TYPES + VENCRYPT + b"\x02\x00\x00\x01\x01\x00\x00\x01\x05", r"types \[257, 261\]"),
    ],
)
def test_a_screen_without_tls_that_proves_who_it_is(talk: bytes, told: str) -> None:
    with pytest.raises(NoTlsOfferedError, match=told) as refused:
        shaken(says(talk))
    assert isinstance(refused.value, ConsoleInsecureError)


@pytest.mark.parametrize(
    ("talk", "told"),
    [
        (b"HTTP/1.1 400 Bad", "it is no screen"),
        (b"RFB 0x3.008\n", "it is no screen"),
        ("RFB ٠٠٣.008\n".encode(), "it is no screen"),
        (VERSION + b"\x00\x00\x00\x00\x04full", "refused: b'full'"),
        (VERSION + b"\x00\xff\xff\xff\xff" + b"x" * 2000, "refused: b'xxx"),
        (VERSION + TYPES + b"\x00\x02\x01", "refused VeNCrypt"),
        (VERSION + TYPES + VENCRYPT + SUBTYPES + b"\x00", "refused TLS"),
        (BEFORE_TLS + b"\x00\x00\x00\x01\x00\x00\x00\x02no", "refused: b'no'"),
    ],
)
def test_a_host_that_refuses_or_is_no_screen(talk: bytes, told: str) -> None:
    with pytest.raises(ConsoleUnreachableError, match=told) as refused:
        shaken(says(talk))
    assert len(str(refused.value)) < 5000


@settings(max_examples=examples(2000), deadline=None)
@given(st.integers(0, len(BEFORE_TLS)), st.binary(max_size=300))
def test_nonsense_anywhere_is_an_ordinary_refusal(kept: int, nonsense: bytes) -> None:
    with suppress(ConsoleUnreachableError):
        shaken(says(BEFORE_TLS[:kept] + nonsense))


@pytest.mark.parametrize("length", [0, 5, len(VERSION), len(VERSION + TYPES), len(BEFORE_TLS)])
def test_a_host_that_stops_in_the_middle_is_not_waited_for(length: int) -> None:
    began = time.monotonic()
    with pytest.raises((TimeoutError, ConsoleUnreachableError)):
        shaken(says(BEFORE_TLS[:length], hangs_up=False), seconds=0.2)
    assert time.monotonic() - began < 5


def test_a_host_that_says_a_byte_now_and_then_gets_no_more_time() -> None:
    ended = threading.Event()

    def drip(there: socket.socket) -> None:
        talk = VERSION + b"\xff" + b"\x01" * 255

        def work() -> None:
            with suppress(OSError):
                for byte in talk:
                    if ended.wait(0.05):
                        return
                    there.sendall(bytes([byte]))

        threading.Thread(target=work, daemon=True).start()

    began = time.monotonic()
    with pytest.raises((TimeoutError, ConsoleUnreachableError)):
        shaken(drip, seconds=0.5)
    ended.set()
    assert time.monotonic() - began < 5
