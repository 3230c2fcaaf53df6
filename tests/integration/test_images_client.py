"""Images of the built-in catalogue, with the official client, openstacksdk and our own commands."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moorage.images.catalogue import SEEDS
from tests.integration.embedded import MOORAGE, Embedded, embedded
from tests.lab.client.openstack import ClientError, openstack, order
from tests.support.closing_server import ClosingHTTPServer
from tests.support.processes import wait_until

DATA = b"QFI\xfb" + os.urandom(3 * 1024 * 1024)
SHA512 = hashlib.sha512(DATA).hexdigest()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    with embedded(tmp_path_factory.mktemp("images"), hosts=1) as running:
        yield running


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    path = tmp_path / "disk.img"
    path.write_bytes(DATA)
    return path


def moorage(cloud: Embedded, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [MOORAGE, "image", *arguments, "--data", cloud.clouds_file.parent]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def test_the_life_of_an_image_with_the_official_client(cloud: Embedded, disk: Path, tmp_path: Path) -> None:
    show, run = partial(openstack, cloud.clouds_file, "moorage"), partial(order, cloud.clouds_file, "moorage")
    shape = ("--disk-format", "qcow2", "--container-format", "bare", "--property", "os_distro=debian")
    made = show("image", "create", "--file", str(disk), *shape, "--private", "mine")
    assert (made["status"], made["size"], made["visibility"]) == ("active", len(DATA), "private")
    run("image", "set", "--property", "colour=blue", "--tag", "t", "--min-ram", "64", "mine")
    shown = show("image", "show", "mine")
    assert (shown["min_ram"], shown["tags"], shown["properties"]["colour"]) == (64, ["t"], "blue")
    run("image", "save", "--file", str(tmp_path / "back"), "mine")
    assert (tmp_path / "back").read_bytes() == DATA
    server = show("server", "create", "--flavor", "m1.tiny", "--image", "mine", "--wait", "one")
    assert server["status"] == "ACTIVE"
    run("image", "delete", "mine")
    with pytest.raises(ClientError, match="No Image found"):
        show("image", "show", "mine")
    with pytest.raises(ClientError, match="403"):
        run("image", "delete", next(iter(SEEDS)))


def test_openstacksdk_uploads_downloads_and_deletes(cloud: Embedded, disk: Path, tmp_path: Path) -> None:
    connection: Any = cloud.connect()
    shape = {"disk_format": "qcow2", "container_format": "bare", "validate_checksum": True}
    made = connection.create_image("sdk", filename=str(disk), wait=True, **shape)
    assert made.status == "active"
    connection.image.download_image(made, output=str(tmp_path / "back"), stream=True)
    assert (tmp_path / "back").read_bytes() == DATA
    connection.image.update_image(made, name="renamed", is_protected=True)
    assert connection.image.find_image("renamed").is_protected
    connection.image.update_image(made, is_protected=False)
    connection.image.delete_image(made)
    assert connection.image.find_image("renamed") is None


def test_our_own_commands_add_files_and_urls(cloud: Embedded, disk: Path) -> None:
    checked = ("--checksum", f"sha512:{SHA512}")
    added = moorage(cloud, "add", "ours", "--file", disk, *checked, "--property", "a=b")
    assert added.returncode == 0, added.stderr
    wrong = moorage(cloud, "add", "wrong", "--file", disk, "--checksum", f"sha512:{'0' * 128}")
    assert (wrong.returncode, "another checksum" in wrong.stderr) == (1, True)
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(disk.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/disk.img"
        assert moorage(cloud, "add", "far", "--url", url).returncode == 1, "it needs a checksum"
        assert moorage(cloud, "add", "far", "--url", url, *checked).returncode == 0
        assert moorage(cloud, "add", "fetched", "--url", url, "--copy").returncode == 0
        server.shutdown()
    listed = {image["name"]: image for image in json.loads(moorage(cloud, "list", "--json").stdout)}
    assert set(listed) == {*SEEDS, "ours", "far", "fetched"}
    assert (listed["ours"]["a"], listed["ours"]["disk_format"]) == ("b", "qcow2")
    assert (listed["ours"]["visibility"], listed["ours"]["owner"]) == ("public", "admin")
    assert {listed[name]["os_hash_value"] for name in ("ours", "far", "fetched")} == {SHA512}
    assert (listed["fetched"]["size"], listed["far"]["size"]) == (len(DATA), None)
    assert "no data" in moorage(cloud, "list").stdout


def test_an_image_that_is_added_may_be_some_projects_alone(cloud: Embedded, disk: Path) -> None:
    assert moorage(cloud, "add", "x", "--file", disk, "--private", "--shared").returncode == 1
    assert moorage(cloud, "add", "theirs", "--file", disk, "--private", "--project", "red").returncode == 0
    assert moorage(cloud, "add", "lent", "--file", disk, "--shared").returncode == 0
    connection: Any = cloud.connect()
    theirs, lent = (connection.image.find_image(name) for name in ("theirs", "lent"))
    assert (theirs.visibility, theirs.owner_id, lent.visibility) == ("private", "red", "shared")
    connection.image.add_member(lent, member_id="red")
    connection.image.update_member("red", lent, status="accepted")
    (member,) = connection.image.members(lent)
    assert (member.member_id, member.status) == ("red", "accepted")
    connection.image.remove_member("red", lent)
    assert list(connection.image.members(lent)) == []
    for image in (theirs, lent):
        connection.image.delete_image(image)


def test_an_image_is_imported_from_a_url(cloud: Embedded, disk: Path) -> None:
    """By the client's command, and by openstacksdk in one go."""
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(disk.parent))
    files = ClosingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=files.serve_forever, args=(0.05,), daemon=True).start()
    url = f"http://127.0.0.1:{files.server_address[1]}/{disk.name}"
    connection: Any = cloud.connect()
    formats: dict[str, Any] = {"disk_format": "qcow2", "container_format": "bare"}
    connection.image.create_image(name="later", **formats)
    given = ("--method", "web-download", "--uri", url)
    order(cloud.clouds_file, "moorage", "image", "import", *given, "later")
    ways: dict[str, Any] = {"use_import": True, "import_method": "web-download", "uri": url}
    connection.image.create_image(name="at-once", **ways, **formats)
    for name in ("later", "at-once"):
        wait_until(partial(is_active, connection, name), "the import", 60)
        made = connection.image.find_image(name)
        assert (made.size, made.hash_value) == (len(DATA), SHA512)
        connection.image.delete_image(made)
    files.shutdown()
    files.server_close()


def is_active(connection: Any, name: str) -> bool:
    return bool(connection.image.find_image(name, ignore_missing=False).status == "active")
