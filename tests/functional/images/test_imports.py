"""Images that are fetched from a URL: by us once, so that machines can be told the URL and a checksum."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from moorage.images import imports
from moorage.images.imports import ImportRefusedError, Imports
from moorage.images.service import ImageService
from tests.support.closing_server import ClosingHTTPServer
from tests.support.compute import Cloud, User, cloud_on
from tests.support.processes import wait_until

DATA = b"QFI\xfb" + bytes(range(256)) * 5000
TOO_LARGE = 3 * 1024 * 1024


class Files:
    """A web server: what is asked for says how it answers."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.asked: list[str] = []
        self._server = ClosingHTTPServer(("127.0.0.1", 0), self._handler())
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}/{path}"

    def stop(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        files = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                files.asked.append(self.path)
                kind = self.path.rpartition("/")[2]
                if kind == "missing":
                    self.send_error(404)
                elif kind in ("elsewhere", "round", "odd"):
                    self.send_response(302)
                    at = {"elsewhere": files.url("disk", "localhost"), "odd": "file:///etc/passwd"}
                    self.send_header("Location", at.get(kind, "/round"))
                    self.end_headers()
                else:
                    self._send(kind)

            def _send(self, kind: str) -> None:
                self.send_response(200)
                length = TOO_LARGE if kind == "large" else len(DATA)
                if kind != "endless":
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                if kind == "slow":
                    files.gate.wait(30)
                if kind == "endless":
                    for _ in range(TOO_LARGE // len(DATA) + 1):
                        self.wfile.write(DATA)
                elif kind != "large":
                    self.wfile.write(DATA[: 1000 if kind == "short" else None])

            def log_message(self, format: str, *args: Any) -> None:
                """The test shows what it did."""

        return Handler


@pytest.fixture(scope="module")
def cloud(module_database_url: str) -> Iterator[Cloud]:
    with cloud_on(module_database_url, {"images.max_size": 2}) as running:
        yield running


@pytest.fixture
def files() -> Iterator[Files]:
    made = Files()
    yield made
    made.stop()


@pytest.fixture
def admin(cloud: Cloud) -> User:
    return replace(cloud.admin, root="/image")


@pytest.fixture
def service(cloud: Cloud) -> ImageService:
    return ImageService.from_conf(cloud.conf, cloud.database)


def queued(user: User, **fields: Any) -> str:
    answer = user.post("/v2/images", {"disk_format": "qcow2", "container_format": "bare", **fields})
    assert (answer.status, answer.headers["openstack-image-import-methods"]) == (201, "web-download")
    return str(answer.json["id"])


def asked(user: User, image_id: str, uri: str | None, name: str = "web-download", **more: Any) -> int:
    method = {"name": name} if uri is None else {"name": name, "uri": uri}
    return int(user.post(f"/v2/images/{image_id}/import", {"method": method, **more}).status)


def shown(user: User, image_id: str) -> dict[str, Any]:
    told: dict[str, Any] = user.get(f"/v2/images/{image_id}").json
    return told


def ended(user: User, image_id: str) -> dict[str, Any]:
    wait_until(lambda: shown(user, image_id)["status"] != "saving", "the end of the import", 30)
    return shown(user, image_id)


def left(cloud: Cloud, image_id: str) -> list[str]:
    return [name for name in os.listdir(cloud.conf.images.directory) if name.startswith(image_id)]


def test_an_image_has_its_data_and_tells_machines_where_it_is(
    cloud: Cloud, admin: User, service: ImageService, files: Files
) -> None:
    image_id = queued(admin)
    assert asked(admin, image_id, files.url("disk"), all_stores=False, all_stores_must_succeed=False) == 202
    told = ended(admin, image_id)
    assert (told["status"], told["size"]) == ("active", len(DATA))
    assert told["os_hash_value"] == hashlib.sha512(DATA).hexdigest()
    image = service.catalogue.find(image_id)
    assert (image.location, image.hash_value) == (files.url("disk"), told["os_hash_value"])
    fetched = admin.client.simulate_get(
        f"/image/v2/images/{image_id}/file", headers={"X-Auth-Token": "admin"}
    )
    assert fetched.content == DATA
    assert asked(admin, image_id, files.url("disk")) == 409
    assert admin.delete(f"/v2/images/{image_id}").status == 204
    assert left(cloud, image_id) == []


def test_only_administrators_have_something_fetched(cloud: Cloud, files: Files) -> None:
    member = replace(cloud.member(), root="/image")
    image_id = queued(member)
    assert asked(member, image_id, files.url("disk")) == 403
    assert shown(member, image_id)["status"] == "queued"
    stranger = replace(cloud.member("eve", "elsewhere"), root="/image")
    assert asked(stranger, image_id, files.url("disk")) == 404
    assert files.asked == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("missing", "answered 404"),
        ("large", "may have"),
        ("endless", "may have"),
        ("short", "broke off"),
        ("round", "leads on and on"),
        ("odd", "is no URL"),
    ],
)
def test_what_can_not_be_fetched_leaves_the_image_as_it_was(
    cloud: Cloud, admin: User, files: Files, path: str, why: str
) -> None:
    image_id = queued(admin)
    assert asked(admin, image_id, files.url(path)) == 202
    wait_until(lambda: "import_error" in shown(admin, image_id), "the failure", 30)
    told = shown(admin, image_id)
    assert (told["status"], told["size"]) == ("queued", None)
    assert why in told["import_error"]
    assert left(cloud, image_id) == []
    assert asked(admin, image_id, files.url("disk")) == 202
    told = ended(admin, image_id)
    assert (told["status"], "import_error" in told) == ("active", False)


def test_nobody_answers(admin: User, files: Files) -> None:
    image_id = queued(admin)
    files.stop()
    assert asked(admin, image_id, files.url("disk")) == 202
    wait_until(lambda: "import_error" in shown(admin, image_id), "the failure", 30)
    assert shown(admin, image_id)["import_error"].endswith("can't be reached: ConnectionError.")


@pytest.mark.parametrize(
    ("uri", "name", "more"),
    [
        (None, "web-download", {}),
        ("http://127.0.0.1/x", "glance-direct", {}),
        ("ftp://127.0.0.1/x", "web-download", {}),
        ("file:///etc/passwd", "web-download", {}),
        ("http://user:secret@127.0.0.1/x", "web-download", {}),
        ("http://127.0.0.1/x", "web-download", {"stores": ["fast"]}),
        ("http://127.0.0.1/x", "web-download", {"all_stores": 3}),
    ],
)
def test_what_makes_no_sense_is_refused(
    admin: User, uri: str | None, name: str, more: dict[str, Any]
) -> None:
    image_id = queued(admin)
    assert asked(admin, image_id, uri, name, **more) == 400
    assert shown(admin, image_id)["status"] == "queued"


def test_an_image_without_formats_is_refused(admin: User, files: Files) -> None:
    image_id = queued(admin, disk_format=None)
    assert asked(admin, image_id, files.url("disk")) == 400
    assert admin.put(f"/v2/images/{image_id}/stage", {}).status == 400
    assert files.asked == []


def test_only_hosts_that_are_named_are_asked_wherever_they_lead(
    admin: User, service: ImageService, files: Files
) -> None:
    named = Imports(service.catalogue, service.uploads, [f"127.0.0.1:{files.port}"])
    image_id = queued(admin)
    for url in (files.url("disk", "localhost"), "http://127.0.0.1:1/disk", "http://169.254.169.254/latest"):
        with pytest.raises(ImportRefusedError):
            named.begin(image_id, url)
    named.begin(image_id, files.url("elsewhere"))
    wait_until(lambda: "import_error" in shown(admin, image_id), "the failure", 30)
    assert shown(admin, image_id)["import_error"] == "Images are not fetched from localhost."
    assert files.asked == ["/elsewhere"]
    Imports(service.catalogue, service.uploads).begin(image_id, files.url("elsewhere"))
    assert ended(admin, image_id)["status"] == "active"


def test_an_image_that_is_deleted_meanwhile_leaves_nothing(cloud: Cloud, admin: User, files: Files) -> None:
    image_id = queued(admin)
    assert asked(admin, image_id, files.url("slow")) == 202
    wait_until(lambda: files.asked == ["/slow"], "the request", 30)
    assert asked(admin, image_id, files.url("disk")) == 409
    assert admin.delete(f"/v2/images/{image_id}").status == 204
    files.gate.set()
    wait_until(lambda: not _at_work(), "the end of the import", 30)
    assert left(cloud, image_id) == []


def test_no_more_are_fetched_at_once_than_a_process_bears(admin: User, files: Files) -> None:
    made = [queued(admin) for _ in range(imports.MOST_AT_ONCE + 1)]
    wait_until(lambda: not _at_work(), "earlier imports to end", 30)
    answers = [asked(admin, image_id, files.url("slow")) for image_id in made]
    assert answers == [202] * imports.MOST_AT_ONCE + [503]
    assert shown(admin, made[-1])["status"] == "queued"
    files.gate.set()
    for image_id in made[:-1]:
        assert ended(admin, image_id)["status"] == "active"


def _at_work() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "image-import"]
