"""Consoles in a real browser: noVNC shows the screen of a QEMU, and the serial page what is typed there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.consoles.guest_tls import GuestTls
from moorage.consoles.links import ConsoleLinks
from moorage.consoles.server import ConsoleServer, listener
from moorage.consoles.settings import ConsoleSettings
from moorage.drivers.contract import DriverError
from moorage.drivers.fake.driver import FakeDriver
from moorage.drivers.parts import ConsoleAddress, ConsoleType
from tests.functional.conductor.conftest import Yard
from tests.support import debian
from tests.support.browser import Browser
from tests.support.certificates import Authority
from tests.support.processes import Service, free_port, port_is_open, start_service, wait_until

COLOURS = """
const canvas = document.querySelector("canvas");
if (!canvas || !canvas.width) return 0;
const area = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const pixels = new Uint32Array(area.data.buffer);
return new Set(pixels).size;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    try:
        debian.install("qemu-system-x86")
        with Browser(tmp_path_factory.mktemp("browser")) as running:
            yield running
    except debian.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def screen(tmp_path: Path) -> Iterator[Service]:
    with showing(tmp_path) as running:
        yield running


@contextmanager
def showing(directory: Path, certificates: Path | None = None) -> Iterator[Service]:
    """A machine without a disk: its firmware says so on the screen."""
    program = str(debian.program("qemu-system-x86"))
    port = free_port()
    at, objects = f"127.0.0.1:{port - 5900}", []
    if certificates is not None:
        at += ",tls-creds=own"
        objects = ["-object", f"tls-creds-x509,id=own,endpoint=server,verify-peer=on,dir={certificates}"]
    command = [
        *(program, "-nodefaults", "-machine", "pc,accel=tcg", "-m", "32", "-vga", "std", "-net", "none"),
        *(*objects, "-vnc", at),
    ]
    with start_service(command, port, directory / "qemu.log", ready=lambda: port_is_open(port)) as running:
        yield running


class Site:
    def __init__(self, directory: Path) -> None:
        listening = listener("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        options: dict[str, Any] = {"consoles.base_url": self.url}
        self.yard = Yard(f"sqlite:///{directory / 'moorage.sqlite'}", directory / "agents", 1, **options)
        settings = ConsoleSettings(check_interval=0.2)
        agents = self.yard.cloud.asking_side()
        self.proxy = ConsoleServer(settings, self.yard.placement.database, agents, listening)
        self.proxy.start()
        [self.uuid] = self.yard.boot()
        self.yard.await_status([self.uuid], "ACTIVE")

    def open(self, protocol: str, kind: str) -> str:
        body = {"remote_console": {"protocol": protocol, "type": kind}}
        answer = self.yard.api.simulate_post(f"/v2.1/servers/{self.uuid}/remote-consoles", json=body)
        assert answer.status_code == 200, answer.text
        return str(answer.json["remote_console"]["url"])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.proxy.stop()
    made.yard.stop()


def state(browser: Browser) -> Any:
    return browser.run("return document.body.dataset.state ?? ''")


def behind(monkeypatch: pytest.MonkeyPatch, screen: Service) -> None:
    def console(_driver: object, _server: str, _node: str, wanted: ConsoleType) -> ConsoleAddress:
        if wanted is not ConsoleType.NOVNC:
            raise DriverError("it has a screen, and nothing else")
        return ConsoleAddress("127.0.0.1", screen.port)

    monkeypatch.setattr(FakeDriver, "console", console)


def test_novnc_shows_a_screen_and_loses_it_with_the_server(
    browser: Browser, screen: Service, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    behind(monkeypatch, screen)
    url = site.open("vnc", "novnc")
    assert url.startswith(f"{site.url}/vnc_auto.html?path=%3Ftoken%3D")
    browser.go(url)
    wait_until(lambda: state(browser) == "connected", "noVNC", 30)
    wait_until(lambda: browser.run(COLOURS) > 1, "something on the screen", 30)
    (tmp_path / "screen.png").write_bytes(browser.screenshot())
    site.yard.delete(site.uuid)
    wait_until(lambda: state(browser) == "disconnected", "the end", 30)


def test_novnc_shows_a_screen_to_which_only_the_proxy_speaks_tls(
    browser: Browser, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    shown = authority.sign("proxy")
    own = authority.sign(str(site.yard.server(site.uuid)["OS-EXT-SRV-ATTR:host"]))
    files = {"ca-cert.pem": authority.cert, "server-cert.pem": own.cert, "server-key.pem": own.key}
    for name, source in files.items():
        shutil.copy(source, tmp_path / name)
    tls = GuestTls(authority.cert, shown.cert, shown.key)
    site.proxy.links = ConsoleLinks(ConsoleSettings(guest_tls=tls))
    with showing(tmp_path, tmp_path) as screen:
        behind(monkeypatch, screen)
        browser.go(site.open("vnc", "novnc"))
        wait_until(lambda: state(browser) == "connected", "noVNC", 30)
        wait_until(lambda: browser.run(COLOURS) > 1, "something on the screen", 30)


def test_the_serial_page_prints_and_types(browser: Browser, site: Site) -> None:
    token = site.open("serial", "serial").partition("token=")[2]
    browser.go(f"{site.url}/serial.html?token={token}")
    printed = 'return document.getElementById("terminal").textContent'
    wait_until(lambda: site.uuid in browser.run(printed), "the greeting", 30)
    browser.type("#terminal", "hello there")
    wait_until(lambda: browser.run(printed).endswith("hello there"), "the echo", 30)
