"""Images on their way, over real connections that break: to the catalogue, and to agents and back."""

from __future__ import annotations

import base64
import http.client
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from moorage.cli import settings
from moorage.drivers.contract import DriverError
from moorage.drivers.image_store import ImageStoreError
from moorage.images import store as stores
from moorage.images.store import ApiImageStore
from tests.support import moorage
from tests.support.faulty_proxy import Fault, FaultyProxy, in_front_of
from tests.support.moorage import PROGRAMS
from tests.support.processes import Service, free_port, start_service, wait_until
from tests.support.profiles import ini

DATA = os.urandom(6 * 1024 * 1024 + 11)
BYTES = "application/octet-stream"


@dataclass
class Site:
    """A process that serves the Image API."""

    service: Service
    port: int
    images: Path
    glance: dict[str, str]
    headers: dict[str, str]

    def store(self, directory: Path, port: int | None = None) -> ApiImageStore:
        """As an agent has it, which may reach the API by another port."""
        section = {**self.glance, "endpoint": f"http://127.0.0.1:{port or self.port}/image"}
        path = directory / "agent.conf"
        path.write_text(ini({"glance": section}))
        return ApiImageStore(settings.read([path]), saving_seconds=30)

    def call(self, method: str, path: str, **options: Any) -> requests.Response:
        url = f"http://127.0.0.1:{self.port}/image/v2/images{path}"
        return requests.request(
            method, url, headers={**self.headers, **options.pop("headers", {})}, timeout=60, **options
        )

    def make(self) -> str:
        made = self.call("POST", "", json={"disk_format": "raw", "container_format": "bare"})
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    def filled(self) -> str:
        image_id = self.make()
        assert self.put(image_id, DATA).status_code == 204
        return image_id

    def put(self, image_id: str, data: Any) -> requests.Response:
        return self.call("PUT", f"/{image_id}/file", data=data, headers={"Content-Type": BYTES})

    def status(self, image_id: str) -> str:
        return str(self.call("GET", f"/{image_id}").json()["status"])

    def files(self, image_id: str) -> list[str]:
        return [name for name in os.listdir(self.images) if name.startswith(image_id)]

    @contextmanager
    def half_way(self, image_id: str) -> Iterator[http.client.HTTPConnection]:
        """An upload that has come to its middle, and stays there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest("PUT", f"/image/v2/images/{image_id}/file")
        for name, value in {**self.headers, "Content-Type": BYTES, "Content-Length": str(len(DATA))}.items():
            connection.putheader(name, value)
        connection.endheaders(DATA[: len(DATA) // 2])
        wait_until(lambda: self.files(image_id) != [], "the upload to be under way")
        yield connection
        connection.close()


@contextmanager
def up(directory: Path, ports: tuple[int, int]) -> Iterator[Site]:
    data = directory / "data"
    command: list[str | Path] = [
        *(PROGRAMS / "moorage", "up", "--data", data, "--hosts", "0"),
        *("--placement-port", str(ports[0]), "--compute-port", str(ports[1])),
    ]
    with start_service(command, ports[1], directory / "up.log") as service:
        password = (data / "password").read_text().strip()
        known = base64.b64encode(f"admin:{password}".encode()).decode()
        glance = {"auth_type": "http_basic", "username": "admin", "password": password}
        yield Site(service, ports[1], data / "images", glance, {"Authorization": f"Basic {known}"})


@contextmanager
def api(directory: Path) -> Iterator[Site]:
    config = moorage.configure(
        directory,
        f"sqlite:///{directory / 'moorage.sqlite'}",
        {
            "compute": {"workers": "2"},
            "images": {"directory": str(directory / "images")},
            "placement_client": {"auth_type": "none", "endpoint": "http://127.0.0.1:1"},
        },
    )
    moorage.sync_database(config)
    port = free_port()
    command: list[str | Path] = [PROGRAMS / "moorage-api", "--config-file", config, "--port", str(port)]
    with start_service(command, port, directory / "api.log") as service:
        yield Site(service, port, directory / "images", {"auth_type": "none"}, {"X-Auth-Token": "admin"})


@pytest.fixture(scope="module", params=["up", "moorage-api"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("site")
    opened = up(directory, (free_port(), free_port())) if request.param == "up" else api(directory)
    with opened as running:
        yield running


@pytest.fixture
def proxy(site: Site) -> Iterator[FaultyProxy]:
    with in_front_of(site.port) as running:
        yield running


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "_PAUSES", (0.01,) * 5)


def test_agents_get_what_was_put_there_and_put_what_others_get(site: Site, tmp_path: Path) -> None:
    store = site.store(tmp_path)
    image = store.describe(site.filled())
    assert (image.status, image.size, image.hash_algorithm) == ("active", len(DATA), "sha512")
    checks: list[int] = []
    store.download(image, tmp_path / "image", lambda: checks.append(1))
    assert (tmp_path / "image").read_bytes() == DATA
    assert len(checks) > len(DATA) // (1024 * 1024)
    snapshot = site.make()
    for _ in range(2):
        store.upload(snapshot, tmp_path / "image", "qcow2", {"kind": "a/b"})
    told = site.call("GET", f"/{snapshot}").json()
    assert (told["status"], told["disk_format"], told["kind"]) == ("active", "qcow2", "a/b")
    assert site.call("GET", f"/{snapshot}/file").content == DATA
    with pytest.raises(ImageStoreError, match="not there"):
        store.describe(str(uuid.uuid4()))


def test_a_download_that_is_cut_goes_on_where_it_was(site: Site, proxy: FaultyProxy, tmp_path: Path) -> None:
    store = site.store(tmp_path, proxy.port)
    image = store.describe(site.filled())
    proxy.fail(Fault(cut=True, method="GET", path="/file", times=2))
    store.download(image, tmp_path / "image", lambda: None)
    assert (tmp_path / "image").read_bytes() == DATA
    assert [status for _, path, status in proxy.answered if path.endswith("/file")] == [200, 206, 206]


def test_wrong_data_is_fetched_again_and_never_taken(site: Site, proxy: FaultyProxy, tmp_path: Path) -> None:
    store = site.store(tmp_path, proxy.port)
    image = store.describe(site.filled())
    proxy.fail(Fault(200, bytes(len(DATA)), method="GET", path="/file", times=1))
    store.download(image, tmp_path / "image", lambda: None)
    assert (tmp_path / "image").read_bytes() == DATA
    proxy.fail(Fault(200, bytes(len(DATA)), method="GET", path="/file"))
    with pytest.raises(ImageStoreError, match="checksum"):
        store.download(image, tmp_path / "image", lambda: None)
    proxy.fail(Fault(503))
    with pytest.raises(ImageStoreError, match="503"):
        store.describe(image.id)


def test_who_waits_for_a_download_may_end_it(site: Site, tmp_path: Path) -> None:
    store = site.store(tmp_path)
    image = store.describe(site.filled())

    def ended() -> None:
        raise DriverError("the server is deleted")

    with pytest.raises(DriverError, match="the server is deleted"):
        store.download(image, tmp_path / "image", ended)


def test_an_upload_whose_answer_is_lost_is_not_sent_twice(
    site: Site, proxy: FaultyProxy, tmp_path: Path
) -> None:
    (tmp_path / "disk").write_bytes(DATA)
    image_id = site.make()
    proxy.fail(Fault(works=True, method="PUT", times=1))
    site.store(tmp_path, proxy.port).upload(image_id, tmp_path / "disk", "raw", {})
    assert site.call("GET", f"/{image_id}/file").content == DATA
    assert [method for method, _ in proxy.requests].count("PUT") == 1


def test_a_client_that_hangs_up_leaves_the_image_queued_and_no_file(site: Site) -> None:
    image_id = site.make()
    with site.half_way(image_id):
        assert site.status(image_id) == "saving"
        assert site.put(image_id, DATA).status_code == 409
    wait_until(lambda: site.status(image_id) == "queued", "the image to be queued again")
    assert site.files(image_id) == []
    assert site.put(image_id, DATA).status_code == 204


def test_an_agent_waits_for_an_upload_that_is_still_under_way(site: Site, tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(DATA)
    image_id = site.make()
    with site.half_way(image_id) as earlier:
        uploading = threading.Thread(
            target=site.store(tmp_path).upload, args=(image_id, tmp_path / "disk", "raw", {})
        )
        uploading.start()
        earlier.send(DATA[len(DATA) // 2 :])
        assert earlier.getresponse().status == 204
    uploading.join(60)
    assert site.call("GET", f"/{image_id}/file").content == DATA


def test_a_refusal_reaches_who_sends_on(site: Site) -> None:
    """However much is still to come, and without any of it being kept."""
    for data in (DATA, iter([DATA] * 4)):
        assert site.put(str(uuid.uuid4()), data).status_code == 404


def test_bodies_of_unknown_length(site: Site) -> None:
    image_id = site.make()
    assert site.put(image_id, iter([DATA[:1000], DATA[1000:]])).status_code == 204
    assert site.call("GET", f"/{image_id}/file").content == DATA


def test_what_an_upload_has_is_not_kept_in_memory(site: Site) -> None:
    def peak() -> int:
        pids = site.service.pids()
        lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
        return max(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    image_id = site.make()
    before = peak()
    assert site.put(image_id, iter([bytes(1024 * 1024)] * 100)).status_code == 204
    with site.call("GET", f"/{image_id}/file", stream=True) as answer:
        assert sum(len(chunk) for chunk in answer.iter_content(1024 * 1024)) == 100 * 1024 * 1024
    assert peak() - before < 40 * 1024, "KiB"


def test_a_process_that_is_killed_amid_an_upload_leaves_the_image_queued_and_no_file(tmp_path: Path) -> None:
    ports = (free_port(), free_port())
    with up(tmp_path, ports) as site:
        kept, image_id = site.filled(), site.make()
        with site.half_way(image_id):
            site.service.kill()
    assert site.files(image_id) != []
    with up(tmp_path, ports) as site:
        assert (site.status(image_id), site.files(image_id)) == ("queued", [])
        assert site.call("GET", f"/{kept}/file").content == DATA
        assert site.put(image_id, DATA).status_code == 204
