"""The proxy: a WebSocket that becomes a console, for who has a token, and for no longer than it is good."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from moorage.consoles import relay
from moorage.consoles.server import ConsoleServer, listener
from moorage.consoles.sessions import CUT, OPEN
from moorage.consoles.settings import ConsoleSettings
from moorage.drivers.contract import DriverError
from moorage.drivers.fake import serial_line
from moorage.drivers.fake.driver import FakeDriver
from moorage.drivers.parts import ConsoleAddress
from moorage.http.tls import TlsFiles
from tests.functional.consoles.conftest import Guests, Make
from tests.functional.consoles.test_remote_consoles import expire, opened
from tests.support import moorage
from tests.support.processes import wait_until
from tests.support.websockets import Refused, WebSocketClient


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """What differs between databases is shown by the tokens' own tests, and by the scaled deployment."""
    return sqlite_url


class Proxy:
    def __init__(self, cloud: Guests, **settings: Any) -> None:
        options = ConsoleSettings(**{"check_interval": 0.2, "connect_timeout": 3, **settings})
        database, agents = cloud.yard.placement.database, cloud.yard.cloud.asking_side()
        self.server = ConsoleServer(options, database, agents, listener("127.0.0.1", 0))
        self.server.start()
        self.scheme = "wss" if options.tls else "ws"

    def url(self, token: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.port}/?token={token}"

    def open(self, token: str, **options: Any) -> WebSocketClient:
        return WebSocketClient(self.url(token), **options)


@pytest.fixture
def proxy() -> Iterator[Callable[..., Proxy]]:
    made: list[Proxy] = []

    def make(cloud: Guests, **settings: Any) -> Proxy:
        made.append(Proxy(cloud, **settings))
        return made[-1]

    yield make
    for one in made:
        one.server.stop()
    wait_until(lambda: OPEN._value.get() == 0, "the end of all sessions", 10)


MakeProxy = Callable[..., Proxy]


def greeting(uuid: str) -> int:
    """How long the first words of a simulated server are."""
    return len(serial_line._GREETING.format(uuid))


def test_what_is_typed_reaches_the_console_and_what_it_says_comes_back(
    guests: Make, proxy: MakeProxy
) -> None:
    cloud = guests()
    uuid = cloud.running()
    client = proxy(cloud).open(opened(cloud, uuid))
    assert uuid.encode() in client.receive(greeting(uuid))
    client.send(b"\x00ls\r\xff")
    assert client.receive(5) == b"\x00ls\r\xff"
    much = bytes(range(256)) * 4000
    assert client.exchange(much) == much
    client.close()


def test_a_token_is_good_again_until_it_expires_and_open_consoles_outlive_it(
    guests: Make, proxy: MakeProxy
) -> None:
    """Browsers reload pages."""
    cloud = guests()
    uuid = cloud.running()
    served, token = proxy(cloud), opened(cloud, uuid)
    first = served.open(token)
    served.open(token).close()
    expire(cloud)
    with pytest.raises(Refused, match="403"):
        served.open(token)
    time.sleep(0.5)  # two looks
    first.receive(greeting(uuid))
    first.send(b"still here")
    assert first.receive(10).endswith(b"still here")
    first.close()


def test_who_has_no_token_gets_no_console(guests: Make, proxy: MakeProxy) -> None:
    cloud = guests()
    served = proxy(cloud)
    for token in ("", "nonsense", "../../etc/passwd"):
        with pytest.raises(Refused, match="403"):
            served.open(token)


def test_pages_of_other_sites_open_no_consoles(guests: Make, proxy: MakeProxy) -> None:
    cloud = guests(**{"consoles.base_url": "http://127.0.0.1:6080"})
    token = opened(cloud, cloud.running())
    served = proxy(cloud, allowed_origins=("horizon.example.org",))
    for origin in ("http://evil.example.org", "null", "https://127.0.0.1"):
        with pytest.raises(Refused, match="403"):
            served.open(token, origin=origin)
    for origin in ("http://127.0.0.1:6080", "http://horizon.example.org"):
        served.open(token, origin=origin).close()


def test_a_deleted_server_takes_its_open_consoles_along(
    guests: Make, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.drivers.fake.serial_line.SerialLines.hang_up", lambda *_: None)
    cloud = guests()
    uuid, other = cloud.running(), cloud.running()
    served = proxy(cloud)
    client, spared = served.open(opened(cloud, uuid)), served.open(opened(cloud, other))
    cut = CUT._value.get()
    cloud.yard.delete(uuid)
    client.await_end()
    assert CUT._value.get() == cut + 1
    assert not spared.is_closed()
    client.close()
    spared.close()


def test_a_server_that_moves_and_a_token_that_is_taken_back_close_consoles(
    guests: Make, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("moorage.drivers.fake.serial_line.SerialLines.hang_up", lambda *_: None)
    cloud = guests(hosts=2)
    uuid, served = cloud.running(), proxy(cloud)
    client = served.open(opened(cloud, uuid))
    live = {"host": None, "block_migration": "auto"}
    assert cloud.act(uuid, "os-migrateLive", live, version="2.30").status_code == 202
    client.await_end(30)
    client.close()
    token = wait_until_opened(cloud, uuid)
    client = served.open(token)
    assert manage(tmp_path, cloud, "close", uuid).startswith("2 URLs taken back")
    client.await_end()
    client.close()
    with pytest.raises(Refused):
        served.open(token)
    assert manage(tmp_path, cloud, "close", uuid).startswith("0 URLs")
    with pytest.raises(subprocess.CalledProcessError) as error:
        manage(tmp_path, cloud, "close", "nobody")
    assert error.value.stderr.strip().endswith("there is no server nobody")


def manage(directory: Path, cloud: Guests, *words: str) -> str:
    """What an operator has done by `moorage-manage consoles`."""
    config = moorage.configure(directory, cloud.yard.conf.database.connection)
    command = [str(moorage.PROGRAMS / "moorage-manage"), "--config-file", str(config), "consoles", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def wait_until_opened(cloud: Guests, uuid: str) -> str:
    cloud.yard.await_status([uuid], "ACTIVE")
    return opened(cloud, uuid)


def test_a_port_that_is_another_servers_by_now_is_not_connected_to(
    guests: Make, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = guests()
    uuid = cloud.running()
    served, token = proxy(cloud), opened(cloud, uuid)
    monkeypatch.setattr(FakeDriver, "console", lambda *_: ConsoleAddress("127.0.0.1", 1))
    with pytest.raises(Refused, match="403"):
        served.open(token)

    def none(*_: object) -> ConsoleAddress:
        raise DriverError("it does not run")

    monkeypatch.setattr(FakeDriver, "console", none)
    with pytest.raises(Refused, match="403"):
        served.open(token)


@pytest.fixture
def peer() -> Iterator[socket.socket]:
    """Something that a test can make into any console it likes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def behind(monkeypatch: pytest.MonkeyPatch, peer: socket.socket, path: str = "") -> None:
    address = ConsoleAddress("127.0.0.1", peer.getsockname()[1], path)
    monkeypatch.setattr(FakeDriver, "console", lambda *_: address)


def test_a_console_that_is_not_there_or_behind_a_path(
    guests: Make, proxy: MakeProxy, peer: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind(monkeypatch, peer, "/vm/7")
    cloud = guests()
    served, token = proxy(cloud), opened(cloud, cloud.running())
    heard: list[bytes] = []

    def serve(answer: bytes) -> None:
        caller, _ = peer.accept()
        heard.append(caller.recv(100))
        caller.sendall(answer)
        caller.close()

    for answer, opens in ((b"HTTP/1.1 200 OK\r\n\r\nRFB", True), (b"HTTP/1.1 404 No\r\n\r\n", False)):
        server = threading.Thread(target=serve, args=(answer,))
        server.start()
        if opens:
            assert served.open(token).receive(3) == b"RFB"
        else:
            with pytest.raises(Refused, match="502"):
                served.open(token)
        server.join(5)
    assert set(heard) == {b"CONNECT /vm/7 HTTP/1.1\r\n\r\n"}
    peer.close()
    with pytest.raises(Refused, match="502"):
        served.open(token)


def test_a_console_that_does_not_read_keeps_nobody_else_waiting_nor_fills_the_memory(
    guests: Make, proxy: MakeProxy, peer: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = guests()
    stuck, lively = cloud.running(), cloud.running()
    served, quick = proxy(cloud), opened(cloud, lively)
    address = ConsoleAddress("127.0.0.1", peer.getsockname()[1])
    usual = FakeDriver.console
    monkeypatch.setattr(
        FakeDriver, "console", lambda me, uuid, *more: address if uuid == stuck else usual(me, uuid, *more)
    )
    client = served.open(opened(cloud, stuck))
    sent = 0
    client._socket.settimeout(1)
    with pytest.raises(TimeoutError):  # noqa: PT012
        while sent < 500_000_000:
            client.send(bytes(65_536))
            sent += 65_536
    assert sent < 50_000_000
    other = served.open(quick)
    other.send(b"me too")
    assert other.receive(greeting(lively) + 6).endswith(b"me too")
    client.close()
    other.close()


def test_a_message_without_end_is_not_waited_for(
    guests: Make, proxy: MakeProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "_LARGEST_MESSAGE", 100_000)
    cloud = guests()
    client = proxy(cloud).open(opened(cloud, cloud.running()))
    head = b"\x82\xff" + (2**40).to_bytes(8, "big") + b"mask"
    with pytest.raises(OSError):  # noqa: PT012
        client._socket.sendall(head)
        while True:
            client._socket.sendall(bytes(65_536))
    client.close()


def test_who_says_nothing_or_hangs_up_harms_nobody(guests: Make, proxy: MakeProxy) -> None:
    cloud = guests()
    served, token = proxy(cloud, max_connections=3), opened(cloud, cloud.running())
    silent = [socket.create_connection(("127.0.0.1", served.server.port)) for _ in range(3)]
    wait_until(lambda: is_full(served, token), "the proxy to be full", 5)
    for one in silent:
        one.close()
    wait_until(lambda: not is_full(served, token), "room", 5)


def is_full(served: Proxy, token: str) -> bool:
    try:
        served.open(token).close()
    except (Refused, OSError):
        return True
    return False


def test_pages_are_served_and_nothing_else_of_the_disk(guests: Make, proxy: MakeProxy) -> None:
    url = f"http://127.0.0.1:{proxy(guests()).server.port}"
    page = requests.get(f"{url}/vnc_auto.html?path=%3Ftoken%3Dx", timeout=10)
    assert page.status_code == 200
    assert "noVNC" in page.text
    assert page.headers["referrer-policy"] == "no-referrer"
    script = requests.get(f"{url}/novnc/core/rfb.js", timeout=10)
    assert "javascript" in script.headers["content-type"]
    assert requests.get(f"{url}/serial.html", timeout=10).status_code == 200
    for path in (
        "/",
        "/novnc",
        "/../handler.py",
        "/%2e%2e/handler.py",
        "/novnc/../../handler.py",
        "//etc/passwd",
    ):
        assert requests.get(url + path, timeout=10).status_code == 404


def test_tls(guests: Make, proxy: MakeProxy, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    also = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*make, *also], check=True, capture_output=True)
    cloud = guests(**{"consoles.base_url": "https://127.0.0.1:6080"})
    uuid = cloud.running()
    served = proxy(cloud, tls=TlsFiles(cert, key, None))
    context = ssl.create_default_context(cafile=str(cert))
    client = served.open(opened(cloud, uuid), context=context, origin="https://127.0.0.1")
    much = bytes(range(256)) * 2000
    client.receive(greeting(uuid))
    assert client.exchange(much) == much
    client.close()
    with pytest.raises((Refused, OSError)):
        WebSocketClient(served.url("x").replace("wss", "ws"))
