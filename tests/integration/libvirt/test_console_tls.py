"""The way from the proxy to a guest's screen and serial line, by TLS: QEMU's own, as libvirt sets it up."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.consoles.guest_tls import GuestTls
from moorage.consoles.links import ConsoleLink, ConsoleLinks
from moorage.consoles.server import ConsoleServer, listener
from moorage.consoles.settings import ConsoleSettings
from moorage.drivers.contract import RUNNING, ServerSpec
from moorage.drivers.fake.driver import FakeDriver
from moorage.drivers.parts import ConsoleType, RemoteConsoles, require
from tests.functional.conductor.conftest import Yard
from tests.integration.libvirt.console_certificates import RELOAD, UNENCRYPTED, Certificates, have_tls
from tests.integration.libvirt.stand import DirectoryImages, LibvirtStand
from tests.lab.libvirt import tiny_guest
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.support.websockets import Refused, WebSocketClient

_VERSION = b"RFB 003.008\n"


class LinksFromInside(ConsoleLinks):
    """The host has no cable: what the proxy opens is opened from its network."""

    def __init__(self, settings: ConsoleSettings, host: LibvirtHost) -> None:
        super().__init__(settings)
        self._host = host

    def open(self, grant: ConsoleGrant) -> ConsoleLink:
        opening = super().open
        return self._host.network.call(lambda: opening(grant))


@dataclass
class Site:
    """A cloud whose only server has the consoles of a real guest."""

    yard: Yard
    stand: LibvirtStand
    spec: ServerSpec
    server: str
    host_name: str
    certificates: Certificates
    installed: Path
    proxies: list[ConsoleServer] = field(default_factory=list)

    def proxy(self, tls: GuestTls | None) -> int:
        settings = ConsoleSettings(check_interval=0.2, connect_timeout=20, guest_tls=tls)
        agents = self.yard.cloud.asking_side()
        made = ConsoleServer(settings, self.yard.placement.database, agents, listener("127.0.0.1", 0))
        made.links = LinksFromInside(settings, self.stand.host)
        made.start()
        self.proxies.append(made)
        return made.port

    def open(self, port: int, kind: ConsoleType) -> WebSocketClient:
        protocol = "vnc" if kind is ConsoleType.NOVNC else "serial"
        body = {"remote_console": {"protocol": protocol, "type": kind.value}}
        answer = self.yard.api.simulate_post(f"/v2.1/servers/{self.server}/remote-consoles", json=body)
        assert answer.status_code == 200, answer.text
        url = urlsplit(answer.json["remote_console"]["url"])
        inner = urlsplit(parse_qs(url.query).get("path", [f"?{url.query}"])[0])
        return WebSocketClient(f"ws://127.0.0.1:{port}/?{inner.query}")

    def refuses(self, port: int, kind: ConsoleType) -> bool:
        with pytest.raises(Refused, match="502"):
            self.open(port, kind)
        return True

    def restart_guest(self) -> None:
        assert self.stand.driver.reboot(self.spec.uuid, self.spec.node_uuid, hard=True) == RUNNING


@pytest.fixture(scope="module")
def site(lab: LibvirtLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The guest has been started before anybody thought of TLS."""
    directory, host = lab.directory / "guest", lab.hosts["h1"]
    images = DirectoryImages(directory / "images")
    image = images.add(tiny_guest.make_disk(directory / "tiny.raw"), "raw")
    stand = LibvirtStand(host, directory, images, image, vnc_listen="127.0.0.1", serial_listen="127.0.0.1")
    spec = stand.spec()
    assert stand.driver.spawn(spec) == RUNNING
    own = tmp_path_factory.mktemp("cloud")
    yard = Yard(f"sqlite:///{own / 'moorage.sqlite'}", own / "agents", 1)
    consoles = require(stand.driver, RemoteConsoles)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            FakeDriver, "console", lambda _, __, ___, kind: consoles.console(spec.uuid, spec.node_uuid, kind)
        )
        [server] = yard.boot()
        yard.await_status([server], "ACTIVE")
        name = str(yard.server(server)["OS-EXT-SRV-ATTR:host"])
        made = Site(yard, stand, spec, server, name, Certificates(own / "pki", name), directory / "pki")
        yield made
        for proxy in made.proxies:
            proxy.stop()
    yard.stop()
    stand.driver.destroy(spec.uuid, spec.node_uuid)
    stand.driver.close()
    assert stand.leftovers() == []


def screen(client: WebSocketClient) -> tuple[int, int]:
    """As a browser begins that knows no TLS but its own: how large the screen is."""
    assert client.receive(len(_VERSION)) == _VERSION
    client.send(_VERSION)
    assert client.receive(2) == b"\x01\x01", "no security, and nothing else"
    client.send(b"\x01")
    assert client.receive(4) == bytes(4)
    client.send(b"\x01")
    width, height = struct.unpack(">HH", client.receive(24)[:4])
    client.close()
    return width, height


def counts(client: WebSocketClient) -> bool:
    said = client.receive(30)
    client.close()
    return b"tick" in said


def test_guests_get_tls_when_they_are_started_and_those_without_are_refused(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    host = site.stand.host
    strict = site.proxy(site.certificates.tls())
    both = site.proxy(site.certificates.tls(plain_hosts=("*",)))
    assert site.refuses(strict, ConsoleType.NOVNC)
    assert "it offers no TLS: its security types are [1]" in caplog.text
    assert site.refuses(strict, ConsoleType.SERIAL)
    assert "it offers no TLS, as its agent says" in caplog.text
    assert screen(site.open(both, ConsoleType.NOVNC))[0] > 0
    assert counts(site.open(both, ConsoleType.SERIAL))
    have_tls(host, site.certificates, site.installed)
    assert host.run("bash", "-c", UNENCRYPTED).count("guest=") == 1
    site.restart_guest()
    assert host.run("bash", "-c", UNENCRYPTED, check=False) == ""
    migratable = host.run("virsh", "dumpxml", "--migratable", site.spec.uuid)
    assert "tls=" not in migratable, "a host that it moves to decides itself"
    for port in (strict, both):
        assert screen(site.open(port, ConsoleType.NOVNC))[0] > 0
        assert counts(site.open(port, ConsoleType.SERIAL))


def test_who_shows_no_certificate_or_one_that_is_no_proxys_is_refused_by_the_host(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also another host's, though the proxy believes that one."""
    stranger = Certificates(tmp_path / "pki", site.host_name).tls()
    believed = site.certificates.tls()
    others = dataclasses.replace(believed, cert=stranger.cert, key=stranger.key)
    for tls in (site.certificates.tls(""), others, site.certificates.tls("hyper-2")):
        port = site.proxy(tls)
        caplog.clear()
        assert site.refuses(port, ConsoleType.NOVNC)
        assert "guest_cert" in caplog.text
        assert hears_nothing(site, port)


def hears_nothing(site: Site, port: int) -> bool:
    """By TLS 1.3, who is refused learns it after it has been let in."""
    try:
        return site.open(port, ConsoleType.SERIAL).receive(1) == b""
    except Refused:
        return True


def test_a_host_that_strangers_vouch_for_or_with_another_name_is_refused(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    port = site.proxy(site.certificates.tls(ca="consoles-ca"))
    assert site.refuses(port, ConsoleType.NOVNC)
    assert site.refuses(port, ConsoleType.SERIAL)
    assert caplog.text.count("certificate verify failed") == 2
    port = site.proxy(site.certificates.tls(by_address=True))
    assert site.refuses(port, ConsoleType.NOVNC)
    assert site.refuses(port, ConsoleType.SERIAL)
    assert caplog.text.count("not valid for '127.0.0.1'") == 2


def test_without_an_authority_nothing_is_said_to_a_line_with_tls(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    assert site.refuses(site.proxy(None), ConsoleType.SERIAL)
    assert "it speaks TLS" in caplog.text


def test_certificates_are_renewed_without_a_restart(site: Site, tmp_path: Path) -> None:
    """By authorities that nobody believed before: that each side takes the new files up can't be missed."""
    host, renewed = site.stand.host, Certificates(tmp_path / "pki", site.host_name)
    port = site.proxy(site.certificates.tls())
    stays = site.open(port, ConsoleType.SERIAL)
    assert screen(site.open(port, ConsoleType.NOVNC))[0] > 0
    pid = host.guest_pids()[site.spec.uuid]
    renewed.install(site.installed)
    host.run("bash", "-ec", RELOAD)
    assert site.refuses(port, ConsoleType.NOVNC), "the proxy has the old ones"
    site.certificates.replace(renewed)
    assert screen(site.open(port, ConsoleType.NOVNC))[0] > 0
    assert host.guest_pids()[site.spec.uuid] == pid
    assert counts(stays), "what is open does not notice"
    assert site.refuses(port, ConsoleType.SERIAL), "a line has the files of its guest's start"
    site.restart_guest()
    assert counts(site.open(port, ConsoleType.SERIAL))
