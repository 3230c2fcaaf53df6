"""A cloud behind HAProxy, set up as docs/operate/proxy.md has it: one public address, with TLS.

The official client, and a console's WebSocket, see that address only.
"""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import requests

from moorage.drivers.fake import serial_line
from tests.integration.embedded import MOORAGE
from tests.lab.client.openstack import openstack
from tests.support import debian, manual
from tests.support.certificates import Authority
from tests.support.debian import Unavailable
from tests.support.processes import Service, free_port, port_is_open, start_service
from tests.support.websockets import Refused, WebSocketClient

HAPROXY = debian.program("haproxy")
PAGE = "operate/proxy.md"
IMAGE = "cirros-0.6.3-x86_64-disk"
CLIENT = "192.0.2.77"


@dataclass(frozen=True)
class Site:
    address: str
    """Of the proxy, with its port."""
    ports: dict[str, int]
    ca: Path
    clouds_file: Path
    up: Service

    def get(self, path: str, **headers: str) -> requests.Response:
        return requests.get(
            f"https://{self.address}{path}",
            headers={"X-Auth-Token": "admin", **headers},
            verify=str(self.ca),
            timeout=30,
        )


def _configure(directory: Path, ports: dict[str, int], pem: Path) -> tuple[Path, Path]:
    """Both files of the page, with addresses of this machine."""
    blocks = {block.kind: block.text for block in reversed(list(manual.blocks(PAGE)))}
    public = f"127.0.0.1:{ports['public']}"
    ours = directory / "moorage.conf"
    ours.write_text(blocks["ini"].replace("cloud.example.com", public))
    front = blocks["text"].replace("203.0.113.5:443", public).replace("/etc/haproxy/cloud.pem", str(pem))
    for name, port in (("compute", 8774), ("placement", 8778), ("consoles", 6080)):
        front = front.replace(f"10.0.0.5:{port}", f"127.0.0.1:{ports[name]}")
    kept = [line for line in front.splitlines() if "10.0.0.6" not in line]
    haproxy = directory / "haproxy.cfg"
    haproxy.write_text("\n".join(kept) + "\n")
    return ours, haproxy


def _clouds_file(data: Path, ca: Path, public: str, ports: dict[str, int]) -> Path:
    """What `moorage up` left, with the public address."""
    text = (data / "clouds.yaml").read_text()
    for name in ("compute", "placement"):
        text = text.replace(f"http://127.0.0.1:{ports[name]}", f"https://{public}/{name}")
    path = data.parent / "clouds.yaml"
    path.write_text(text.replace("  moorage:\n", f"  moorage:\n    cacert: {ca}\n"))
    return path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    try:
        debian.install("haproxy")
    except Unavailable as error:
        pytest.skip(str(error))
    directory = tmp_path_factory.mktemp("proxy")
    authority = Authority(directory)
    ports = {name: free_port() for name in ("public", "compute", "placement", "consoles")}
    public = f"127.0.0.1:{ports['public']}"
    ours, front = _configure(directory, ports, authority.sign("cloud", "127.0.0.1").both)
    subprocess.run([HAPROXY, "-c", "-f", front], check=True, capture_output=True)
    data = directory / "data"
    command: list[str | Path] = [
        *(MOORAGE, "up", "--data", data, "--auth", "none", "--hosts", "1", "--verbose"),
        *("--compute-port", str(ports["compute"]), "--placement-port", str(ports["placement"])),
        *("--console-port", str(ports["consoles"]), "--config", ours),
    ]
    with ExitStack() as stack:
        up = stack.enter_context(
            start_service(
                command, ports["compute"], directory / "up.log", ready=lambda: port_is_open(ports["compute"])
            )
        )
        proxy: list[str | Path] = [HAPROXY, "-db", "-f", front]
        stack.enter_context(
            start_service(
                proxy,
                ports["public"],
                directory / "haproxy.log",
                ready=lambda: port_is_open(ports["public"]),
            )
        )
        made = _clouds_file(data, authority.cert, public, ports)
        yield Site(public, ports, authority.cert, made, up)


def _addresses(document: Any) -> Iterator[str]:
    """All that begins as an address, wherever it is in an answer."""
    if isinstance(document, dict):
        for name, value in document.items():
            if name == "href" and isinstance(value, str):
                yield value
            yield from _addresses(value)
    elif isinstance(document, list):
        for item in document:
            yield from _addresses(item)


def test_links_have_the_public_address(site: Site) -> None:
    public = f"https://{site.address}"
    for path in ("/compute/", "/compute/v2.1/", "/compute/v2.1/flavors", "/compute/image/versions"):
        answer = site.get(path)
        assert answer.status_code in (200, 300), answer.text
        found = [href for href in _addresses(answer.json()) if "docs.openstack.org" not in href]
        assert found, path
        assert all(href.startswith(f"{public}/compute/") for href in found), found
    flavors = site.get("/compute/v2.1/flavors?limit=1").json()
    assert flavors["flavors_links"][0]["href"].startswith(f"{public}/compute/v2.1/flavors?")
    assert flavors["flavors"][0]["links"][1]["href"].startswith(f"{public}/compute/flavors/")
    made = requests.post(
        f"{public}/placement/resource_providers",
        json={"name": "n"},
        headers={"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.20"},
        verify=str(site.ca),
        timeout=30,
    )
    assert made.headers["location"] == f"{public}/placement/resource_providers/{made.json()['uuid']}"
    assert made.json()["links"][0]["href"].startswith("/placement/resource_providers/")


def test_what_a_client_says_itself_is_not_believed(site: Site) -> None:
    lies = {
        "X-Forwarded-Host": "evil.example.com",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Prefix": "/evil",
        "X-Forwarded-For": CLIENT,
        "Forwarded": f"for={CLIENT};host=evil.example.com",
    }
    answer = site.get("/compute/v2.1/flavors", **lies)
    assert "evil" not in answer.text
    assert CLIENT not in site.up.log.read_text()


def test_the_log_has_the_address_of_the_client(site: Site) -> None:
    context = ssl.create_default_context(cafile=str(site.ca))
    connection = HTTPSConnection(site.address, context=context, source_address=("127.0.0.9", 0), timeout=30)
    connection.request("GET", "/placement/resource_providers?name=seen", headers={"X-Auth-Token": "admin"})
    assert connection.getresponse().status == 200
    connection.close()
    assert '127.0.0.9 "GET /resource_providers?name=seen" status: 200' in site.up.log.read_text()


def test_metrics_are_not_for_the_public(site: Site) -> None:
    assert site.get("/compute/metrics").status_code == 404


def test_the_official_client_with_a_certificate_of_its_own_authority(site: Site) -> None:
    made = openstack(
        *(site.clouds_file, "moorage", "server", "create", "--flavor", "m1.tiny"),
        *("--image", IMAGE, "--wait", "one"),
    )
    assert made["status"] == "ACTIVE"
    providers = openstack(site.clouds_file, "moorage", "resource", "provider", "list")
    assert "fake-1" in [provider["name"] for provider in providers]
    url = openstack(site.clouds_file, "moorage", "console", "url", "show", "--serial", "one")["url"]
    assert url.startswith(f"wss://{site.address}/consoles/?token=")
    context = ssl.create_default_context(cafile=str(site.ca))
    console = WebSocketClient(url, context=context, origin=f"https://{site.address}")
    assert made["id"].encode() in console.receive(len(serial_line._GREETING.format(made["id"])))
    console.close()
    with pytest.raises(Refused, match="403"):
        WebSocketClient(url, context=context, origin="https://other.example.com")
    page = f"https://{site.address}/consoles/serial.html"
    served = requests.get(page, params=parse_qs(urlsplit(url).query), verify=str(site.ca), timeout=30)
    assert served.status_code == 200
