"""TLS between the proxy and a console: what passes it, what does not, and hosts that mean no good."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from moorage.consoles.guest_tls import GuestTls
from moorage.consoles.handler import OPENED, ConsoleHandler
from moorage.drivers.fake.driver import FakeDriver
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from tests.functional.consoles.conftest import Guests, Make
from tests.functional.consoles.test_proxy import MakeProxy, proxy
from tests.functional.consoles.test_remote_consoles import asked, opened, token_of
from tests.support.certificates import Authority
from tests.support.processes import wait_until
from tests.support.websockets import Refused, WebSocketClient

__all__ = ["proxy"]
VERSION = b"RFB 003.008\n"
_OFFER = b"\x01\x13", b"\x00\x02", b"\x00\x01" + (260).to_bytes(4, "big"), b"\x01"
_CHOICE = 1, 2, 4, 0
"""Bytes that are awaited after each."""


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    return sqlite_url


class Host:
    """A console that speaks TLS, shows a certificate, asks for one, and then says what it hears."""

    def __init__(self, authority: Authority, name: str) -> None:
        pair = authority.sign(name)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.cert))
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.load_cert_chain(pair.cert, pair.key)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.in_the_clear = b""
        """All that it has heard before TLS."""
        self.speak: Callable[[socket.socket], None] = self.echo
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listening.accept()
                threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: socket.socket) -> None:
        with suppress(OSError), caller:
            self.speak(caller)

    def close(self) -> None:
        self._listening.close()

    def line(self, caller: socket.socket) -> None:
        with self._context.wrap_socket(caller, server_side=True) as inside:
            self.echo(inside)

    def screen(self, caller: socket.socket) -> None:
        self.say(caller, VERSION, len(VERSION))
        for said, heard in zip(_OFFER, _CHOICE, strict=True):
            self.say(caller, said, heard)
        with self._context.wrap_socket(caller, server_side=True) as inside:
            inside.sendall(bytes(4))
            self.echo(inside)

    def plain(self, caller: socket.socket) -> None:
        self.say(caller, VERSION, len(VERSION))
        self.say(caller, b"\x01\x01", 1000)

    def silent_screen(self, caller: socket.socket) -> None:
        """From where TLS would begin."""
        self.say(caller, VERSION, len(VERSION))
        for said, heard in zip(_OFFER, _CHOICE, strict=True):
            self.say(caller, said, heard)
        self.silent_line(caller)

    def silent_line(self, caller: socket.socket) -> None:
        while caller.recv(1000):
            pass

    def say(self, caller: socket.socket, words: bytes, answer: int) -> None:
        caller.sendall(words)
        if answer:
            self.in_the_clear += caller.recv(answer)

    def echo(self, inside: socket.socket) -> None:
        while data := inside.recv(65_536):
            inside.sendall(data)


class Site:
    def __init__(self, cloud: Guests, uuid: str, host: Host, tls: GuestTls) -> None:
        self.cloud, self.uuid, self.host, self.tls = cloud, uuid, host, tls

    def token(self, kind: ConsoleType = ConsoleType.NOVNC) -> str:
        if kind is ConsoleType.SERIAL:
            return opened(self.cloud, self.uuid)
        url = asked(self.cloud, self.uuid, "vnc", "novnc").json["remote_console"]["url"]
        return token_of(url.replace("%3Ftoken%3D", "&token="))


@pytest.fixture
def site(guests: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    cloud = guests()
    uuid = cloud.running()
    authority = Authority(tmp_path)
    shown = authority.sign("proxy")
    host = Host(authority, cloud.host(uuid))

    def console(_driver: object, _server: str, _node: str, wanted: ConsoleType) -> ConsoleAddress:
        return ConsoleAddress("127.0.0.1", host.port, tls=wanted is ConsoleType.SERIAL)

    monkeypatch.setattr(FakeDriver, "console", console)
    yield Site(cloud, uuid, host, GuestTls(authority.cert, shown.cert, shown.key))
    host.close()


def begin(client: WebSocketClient) -> None:
    """As noVNC does."""
    assert client.receive(len(VERSION)) == VERSION
    client.send(VERSION)
    assert client.receive(2) == b"\x01\x01"
    client.send(b"\x01")
    assert client.receive(4) == bytes(4)


def insecure() -> float:
    return float(OPENED.labels("insecure")._value.get())


def test_a_screen_and_a_line_carry_all_that_is_said_until_the_server_is_gone(
    site: Site, proxy: MakeProxy
) -> None:
    served = proxy(site.cloud, guest_tls=site.tls)
    much = bytes(range(256)) * 4000
    site.host.speak = site.host.screen
    screen = served.open(site.token())
    begin(screen)
    assert screen.exchange(much) == much
    assert site.host.in_the_clear == VERSION + b"\x13\x00\x02" + (260).to_bytes(4, "big")
    site.host.speak = site.host.line
    line = served.open(site.token(ConsoleType.SERIAL))
    assert line.exchange(much) == much
    site.cloud.yard.delete(site.uuid)
    for client in (screen, line):
        client.await_end()
        client.close()


def test_a_console_that_does_not_read_for_a_while_gets_all_of_it_in_the_end(
    site: Site, proxy: MakeProxy
) -> None:
    goes_on, heard = threading.Event(), hashlib.sha256()

    def late(inside: socket.socket) -> None:
        goes_on.wait(30)
        while data := inside.recv(65_536):
            heard.update(data)

    site.host.speak, site.host.echo = site.host.line, late  # type: ignore[method-assign]
    client = proxy(site.cloud, guest_tls=site.tls).open(site.token(ConsoleType.SERIAL))
    said = hashlib.sha256()
    sent = [0, 0]

    def send() -> None:
        for number in range(400):
            words = number.to_bytes(4, "big") * 16_384
            said.update(words)
            client.send(words)
            sent[0] += 1

    writer = threading.Thread(target=send)
    writer.start()
    while sent[0] != sent[1] or not sent[0]:
        sent[1] = sent[0]
        time.sleep(0.5)
    assert sent[0] < 400, "nothing waits for anybody"
    goes_on.set()
    writer.join(30)
    wait_until(lambda: heard.digest() == said.digest(), "all of it")
    client.close()


def test_what_a_browser_says_at_once_is_the_guests_once_it_is_through(site: Site, proxy: MakeProxy) -> None:
    site.host.speak = site.host.screen
    client = proxy(site.cloud, guest_tls=site.tls).open(site.token())
    client.send(VERSION + b"\x01" + b"first words")
    assert client.receive(18 + 11) == VERSION + b"\x01\x01" + bytes(4) + b"first words"
    client.close()


def test_a_browser_that_does_not_keep_to_it_reaches_no_guest(
    site: Site, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConsoleHandler, "timeout", 1)
    heard: list[bytes] = []
    monkeypatch.setattr(Host, "echo", lambda _, inside: heard.append(inside.recv(1000)))
    site.host.speak = site.host.screen
    served = proxy(site.cloud, guest_tls=site.tls)
    for said in (b"RFB 003.003\n", b"GET / HTTP/1.1\r\n", VERSION + b"\x02", VERSION[:5], b""):
        client = served.open(site.token())
        if said:
            client.send(said)
        client.await_end()
        client.close()
    assert set(heard) == {b""}


def test_a_screen_without_tls_hears_nothing_of_the_browser(
    site: Site, proxy: MakeProxy, caplog: pytest.LogCaptureFixture
) -> None:
    site.host.speak = site.host.plain
    served, before = proxy(site.cloud, guest_tls=site.tls), insecure()
    with pytest.raises(Refused, match="502"):
        served.open(site.token())
    assert site.host.in_the_clear == VERSION, "which is the proxy's"
    assert insecure() == before + 1
    assert f"server {site.uuid} on {site.cloud.host(site.uuid)}, 127.0.0.1:{site.host.port}" in caplog.text
    assert "it offers no TLS: its security types are [1]" in caplog.text


def test_files_that_have_become_useless_let_nobody_through(
    site: Site, proxy: MakeProxy, caplog: pytest.LogCaptureFixture
) -> None:
    site.host.speak = site.host.screen
    served = proxy(site.cloud, guest_tls=site.tls)
    kept = site.tls.ca.read_bytes()
    site.tls.ca.write_text("nothing")
    with pytest.raises(Refused, match="502"):
        served.open(site.token())
    assert "guest_ca" in caplog.text
    site.tls.ca.write_bytes(kept)
    begin(served.open(site.token()))


def test_a_host_that_does_not_go_on_with_tls_costs_a_bounded_time(site: Site, proxy: MakeProxy) -> None:
    served = proxy(site.cloud, guest_tls=site.tls, connect_timeout=0.5)
    for speak, kind in (
        (site.host.silent_screen, ConsoleType.NOVNC),
        (site.host.silent_line, ConsoleType.SERIAL),
    ):
        site.host.speak = speak
        began = time.monotonic()
        with pytest.raises(Refused, match="502"):
            served.open(site.token(kind))
        assert time.monotonic() - began < 8
