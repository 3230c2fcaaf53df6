"""The write part of the Image API, on the built-in catalogue: records, their data, and whose they are."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import falcon.testing
import pytest
import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.images import images
from moorage.drivers.image_store import ImageStoreError
from moorage.images import uploads as uploading
from moorage.images.catalogue import SEEDS, seed_id
from moorage.images.contract import ImageNotFoundError, ImageRefusedError, NewImage
from moorage.images.files import ImageFiles
from moorage.images.link import PATCH_TYPE
from moorage.images.local_store import LocalImageStore
from moorage.images.service import ImageService
from tests.support.compute import Cloud, User, cloud_on

DATA = b"QFI\xfb" + bytes(range(256)) * 5000
BYTES = {"Content-Type": "application/octet-stream"}
SEED = seed_id(next(iter(SEEDS)))
Json = dict[str, Any]


@pytest.fixture(scope="module")
def cloud(module_database_url: str) -> Iterator[Cloud]:
    with cloud_on(module_database_url, {"images.max_size": 2}) as running:
        yield running


@pytest.fixture
def service(cloud: Cloud) -> ImageService:
    return ImageService.from_conf(cloud.conf, cloud.database)


@pytest.fixture
def owner(cloud: Cloud) -> User:
    return replace(cloud.member(), root="/image")


@pytest.fixture
def stranger(cloud: Cloud) -> User:
    return replace(cloud.member("eve", "elsewhere"), root="/image")


@pytest.fixture
def admin(cloud: Cloud) -> User:
    return replace(cloud.admin, root="/image")


def send(user: User, method: str, path: str, body: bytes, headers: dict[str, str]) -> falcon.testing.Result:
    who = {"X-Auth-Token": f"{user.user_id}:{user.project_id}", "X-Roles": user.roles}
    return user.client.simulate_request(method, f"/image{path}", body=body, headers={**who, **headers})


def fetch(user: User, path: str, **headers: str) -> falcon.testing.Result:
    return send(user, "GET", path, b"", headers)


def patch(user: User, image_id: str, *steps: Json) -> falcon.testing.Result:
    body = json.dumps(steps).encode()
    return send(user, "PATCH", f"/v2/images/{image_id}", body, {"Content-Type": PATCH_TYPE})


def made(user: User, **fields: Any) -> str:
    answer = user.post("/v2/images", {"disk_format": "qcow2", "container_format": "bare", **fields})
    assert answer.status == 201, answer.text
    return str(answer.json["id"])


def filled(user: User, data: bytes = DATA, **fields: Any) -> str:
    image_id = made(user, **fields)
    assert send(user, "PUT", f"/v2/images/{image_id}/file", data, BYTES).status_code == 204
    return image_id


def files(cloud: Cloud) -> list[str]:
    return sorted(os.listdir(cloud.conf.images.directory))


def test_an_image_gets_its_data_once_and_gives_it_back(cloud: Cloud, owner: User) -> None:
    image_id = made(owner, name="mine", hw_disk_bus="scsi", min_disk=1)
    record = owner.get(f"/v2/images/{image_id}").json
    assert (record["status"], record["size"], record["visibility"]) == ("queued", None, "shared")
    assert fetch(owner, f"/v2/images/{image_id}/file").status_code == 204
    assert send(owner, "PUT", f"/v2/images/{image_id}/file", DATA, BYTES).status_code == 204
    record = owner.get(f"/v2/images/{image_id}").json
    assert (record["status"], record["size"], record["hw_disk_bus"]) == ("active", len(DATA), "scsi")
    assert record["checksum"] == hashlib.md5(DATA).hexdigest()
    assert (record["os_hash_algo"], record["os_hash_value"]) == ("sha512", hashlib.sha512(DATA).hexdigest())
    whole = fetch(owner, f"/v2/images/{image_id}/file")
    assert (whole.status_code, whole.content) == (200, DATA)
    assert whole.headers["content-md5"] == record["checksum"]
    again = send(owner, "PUT", f"/v2/images/{image_id}/file", b"other", BYTES)
    assert again.status_code == 409
    assert fetch(owner, f"/v2/images/{image_id}/file").content == DATA
    assert owner.delete(f"/v2/images/{image_id}").status == 204
    assert owner.get(f"/v2/images/{image_id}").status == 404
    assert [name for name in files(cloud) if name.startswith(image_id)] == []


@pytest.mark.parametrize(
    ("asked", "status", "first", "last"),
    [
        ("bytes=1000-", 206, 1000, len(DATA)),
        ("bytes=0-9", 206, 0, 10),
        ("bytes=-16", 206, len(DATA) - 16, len(DATA)),
        ("bytes=5-99999999999", 206, 5, len(DATA)),
        ("lines=1-2", 200, 0, len(DATA)),
        ("bytes=-", 200, 0, len(DATA)),
    ],
)
def test_ranges(owner: User, asked: str, status: int, first: int, last: int) -> None:
    image_id = filled(owner)
    answer = fetch(owner, f"/v2/images/{image_id}/file", Range=asked)
    assert (answer.status_code, answer.content) == (status, DATA[first:last])
    if status == 206:
        assert answer.headers["content-range"] == f"bytes {first}-{last - 1}/{len(DATA)}"


def test_a_range_behind_the_end(owner: User) -> None:
    answer = fetch(owner, f"/v2/images/{filled(owner)}/file", Range=f"bytes={len(DATA)}-")
    assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{len(DATA)}")


def test_private_images_are_their_projects_and_the_administrators(
    cloud: Cloud, owner: User, stranger: User, admin: User
) -> None:
    image_id = filled(owner, name="secret")
    for path in ("", "/file", "/members"):
        assert fetch(stranger, f"/v2/images/{image_id}{path}").status_code == 404
        assert fetch(admin, f"/v2/images/{image_id}{path}").status_code == 200
    assert patch(stranger, image_id, {"op": "replace", "path": "/name", "value": "x"}).status_code == 404
    assert stranger.delete(f"/v2/images/{image_id}").status == 404
    assert stranger.get("/v2/images?name=secret").json["images"] == []
    assert len(admin.get("/v2/images?name=secret").json["images"]) == 1
    find = cloud.service.images.find
    assert find(image_id, project_id=owner.project_id).name == find(image_id).name == "secret"
    with pytest.raises(ImageNotFoundError):
        find(image_id, project_id=stranger.project_id)


def test_a_server_boots_from_nobody_elses_private_image(cloud: Cloud, owner: User) -> None:
    body = {"server": {"name": "s", "flavorRef": "1", "imageRef": filled(owner), "networks": "none"}}
    cloud.admin.post("/flavors", {"flavor": {"id": "1", "name": "tiny", "vcpus": 1, "ram": 512, "disk": 1}})
    refused = cloud.member("eve", "elsewhere").post("/servers", body)
    assert refused.fault == ("badRequest", "Can not find requested image")
    assert cloud.member().post("/servers", body).status == 202


def test_who_may_offer_an_image_to_everybody(owner: User, stranger: User, admin: User) -> None:
    assert owner.post("/v2/images", {"visibility": "public"}).status == 403
    assert owner.post("/v2/images", {"owner": "another"}).status == 403
    image_id = filled(owner, name="offered", visibility="community")
    assert stranger.get(f"/v2/images/{image_id}").status == 200
    assert stranger.get("/v2/images?name=offered").json["images"] == []
    assert len(stranger.get("/v2/images?name=offered&visibility=community").json["images"]) == 1
    publish = {"op": "replace", "path": "/visibility", "value": "public"}
    assert patch(owner, image_id, publish).status_code == 403
    assert patch(stranger, image_id, publish).status_code == 403
    assert patch(admin, image_id, publish).status_code == 200
    assert len(stranger.get("/v2/images?name=offered").json["images"]) == 1


def test_what_is_said_of_an_image_can_be_changed(owner: User, cloud: Cloud) -> None:
    image_id = filled(owner, name="before", old="1", tags=["a"])
    cloud.service.images.find(image_id)  # remembered for a moment
    answer = patch(
        owner,
        image_id,
        {"op": "replace", "path": "/name", "value": "after"},
        {"op": "add", "path": "/trait:HW_CPU_X86_AVX~1x", "value": "required"},
        {"op": "remove", "path": "/old"},
        {"op": "replace", "path": "/min_ram", "value": 64},
        {"op": "replace", "path": "/tags", "value": ["b", "a", "b"]},
        {"op": "replace", "path": "/protected", "value": True},
    )
    assert answer.status_code == 200, answer.text
    assert answer.json["trait:HW_CPU_X86_AVX/x"] == "required"
    assert "old" not in answer.json
    assert (answer.json["name"], answer.json["min_ram"], answer.json["tags"]) == ("after", 64, ["a", "b"])
    assert cloud.service.images.find(image_id).min_ram == 64
    assert owner.delete(f"/v2/images/{image_id}").status == 403, "it is protected"
    assert owner.call("PUT", f"/v2/images/{image_id}/tags/c").status == 204
    assert owner.delete(f"/v2/images/{image_id}/tags/a").status == 204
    assert owner.delete(f"/v2/images/{image_id}/tags/a").status == 404
    assert owner.get(f"/v2/images/{image_id}").json["tags"] == ["b", "c"]


@pytest.mark.parametrize(
    ("step", "status"),
    [
        ({"op": "replace", "path": "/status", "value": "deleted"}, 403),
        ({"op": "replace", "path": "/id", "value": str(uuid.uuid4())}, 403),
        ({"op": "replace", "path": "/disk_format", "value": "raw"}, 403),
        ({"op": "replace", "path": "/owner", "value": "another"}, 403),
        ({"op": "remove", "path": "/name"}, 403),
        ({"op": "remove", "path": "/no-such"}, 409),
        ({"op": "replace", "path": "/no-such", "value": "x"}, 409),
        ({"op": "add", "path": "/number", "value": 5}, 400),
        ({"op": "add", "path": "/nested/path", "value": "x"}, 400),
        ({"op": "add", "path": "/min_ram", "value": -1}, 400),
        ({"op": "add", "path": "/novalue"}, 400),
        ({"op": "move", "path": "/name"}, 400),
        ({"op": "add", "path": "/locations/-", "value": {"url": "http://x/y"}}, 403),
    ],
)
def test_changes_that_are_refused_change_nothing(owner: User, step: Json, status: int) -> None:
    image_id = filled(owner, name="same")
    before = owner.get(f"/v2/images/{image_id}").json
    first = {"op": "add", "path": "/colour", "value": "blue"}
    assert patch(owner, image_id, first, step).status_code == status
    assert owner.get(f"/v2/images/{image_id}").json == before


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"id": "not-a-uuid"}, 400),
        ({"disk_format": "floppy"}, 400),
        ({"min_disk": "1"}, 400),
        ({"colour": 5}, 400),
        ({"name": "x" * 256}, 400),
        ({"size": 5}, 400),
        ({"status": "active"}, 403),
    ],
)
def test_records_that_are_refused(owner: User, fields: Json, status: int) -> None:
    assert owner.post("/v2/images", fields).status == status


def test_an_id_that_was_chosen_is_used_once(owner: User) -> None:
    chosen = str(uuid.uuid4())
    assert made(owner, id=chosen) == chosen
    assert owner.post("/v2/images", {"id": chosen}).status == 409


def test_data_that_is_refused_leaves_the_image_queued_and_no_file(cloud: Cloud, owner: User) -> None:
    before = files(cloud)
    plain = owner.post("/v2/images", {"name": "no formats"}).json["id"]
    assert send(owner, "PUT", f"/v2/images/{plain}/file", DATA, BYTES).status_code == 400
    image_id = made(owner)
    path = f"/v2/images/{image_id}/file"
    assert send(owner, "PUT", path, bytes(3 * 1024 * 1024), BYTES).status_code == 413
    assert send(owner, "PUT", path, b"{}", {"Content-Type": "application/json"}).status_code == 415
    short = {**BYTES, "Content-Length": str(len(DATA) + 1)}
    assert send(owner, "PUT", path, DATA, short).status_code == 400
    assert owner.get(f"/v2/images/{image_id}").json["status"] == "queued"
    assert files(cloud) == before
    assert send(owner, "PUT", path, DATA, BYTES).status_code == 204


def test_a_url_takes_the_place_of_data_if_an_administrator_says_so(cloud: Cloud, admin: User) -> None:
    image_id = made(admin)
    data = {"os_hash_algo": "sha512", "os_hash_value": "ab" * 64}
    where = {"url": "http://images.example.org/a.qcow2", "metadata": {}, "validation_data": data}
    assert (
        patch(admin, image_id, {"op": "add", "path": "/locations/-", "value": {"url": "x"}}).status_code
        == 400
    )
    assert patch(admin, image_id, {"op": "add", "path": "/locations/-", "value": where}).status_code == 200
    found = cloud.service.images.find(image_id)
    assert (found.status, found.location, found.hash_value) == ("active", where["url"], "ab" * 64)
    assert fetch(admin, f"/v2/images/{image_id}/file").status_code == 204


def test_an_upload_whose_process_died_is_taken_over_when_its_lease_is_over(
    cloud: Cloud, owner: User, service: ImageService
) -> None:
    image_id = made(owner)
    path = f"/v2/images/{image_id}/file"

    def dying(_most: int) -> bytes:
        moved = {"upload_seen_at": utcnow() - timedelta(seconds=uploading.LEASE_SECONDS + 1)}
        assert send(owner, "PUT", path, DATA, BYTES).status_code == 409, "somebody is at it"
        with cloud.database.write() as connection:
            connection.execute(sa.update(images).where(images.c.uuid == image_id).values(moved))
        assert send(owner, "PUT", path, DATA, BYTES).status_code == 204, "nobody is"
        return b""

    with pytest.raises(ImageNotFoundError):
        service.uploads.receive(image_id, dying, None)
    assert fetch(owner, path).content == DATA
    assert len([name for name in files(cloud) if name.startswith(image_id)]) == 1


def test_files_that_no_row_names_are_swept_and_no_others(
    cloud: Cloud, owner: User, service: ImageService
) -> None:
    kept = filled(owner)
    directory = Path(cloud.conf.images.directory)
    old = utcnow().timestamp() - 3600
    for name in ("README", f"{uuid.uuid4()}.{uuid.uuid4()}", f"{uuid.uuid4()}.{uuid.uuid4()}.part"):
        (directory / name).write_bytes(b"x")
    young = directory / f"{uuid.uuid4()}.{uuid.uuid4()}.part"
    before = files(cloud)
    for name in before:
        os.utime(directory / name, (old, old))
    young.write_bytes(b"just begun")
    assert service.uploads.sweep() == 2
    left = files(cloud)
    assert {"README", young.name} <= set(left)
    assert fetch(owner, f"/v2/images/{kept}/file").content == DATA
    (directory / "README").unlink()


def test_records_for_snapshots_are_made_found_and_deleted(service: ImageService) -> None:
    catalogue = service.catalogue
    marks = {"instance_uuid": str(uuid.uuid4()), "image_type": "backup"}
    chosen = str(uuid.uuid4())
    first = catalogue.create(NewImage("a", "p", properties=marks))
    second = catalogue.create(NewImage("b", "p", id=chosen, properties={**marks, "more": "x"}))
    assert catalogue.create(NewImage("b", "p", id=chosen)) == second == chosen
    other = catalogue.create(NewImage("c", "q", properties=marks))
    found = catalogue.select(marks, project_id="p")
    assert [image.id for image in found] == [second, first]
    assert {image.status for image in found} == {"queued"}
    assert next(image.id for image in catalogue.select(marks)) == other
    for image_id in (first, first, second, other):
        catalogue.delete(image_id)
    assert catalogue.select(marks) == []
    with pytest.raises(ImageRefusedError):
        catalogue.delete(SEED)


def test_drivers_in_the_same_process_get_and_put_data(
    service: ImageService, cloud: Cloud, owner: User, tmp_path: Path
) -> None:
    store = LocalImageStore(service.catalogue, service.files, service.uploads)
    image_id = filled(owner, hw_disk_bus="scsi")
    image = store.describe(image_id)
    assert (image.size, image.properties["hw_disk_bus"]) == (len(DATA), "scsi")
    checks: list[int] = []
    store.download(image, tmp_path / "image", lambda: checks.append(1))
    assert ((tmp_path / "image").read_bytes(), len(checks)) == (DATA, 2)
    snapshot = service.catalogue.create(NewImage("snap", owner.project_id))
    for _ in range(2):
        store.upload(snapshot, tmp_path / "image", "qcow2", {"kind": "snapshot"})
    assert fetch(owner, f"/v2/images/{snapshot}/file").content == DATA
    assert store.describe(snapshot).properties == {"kind": "snapshot"}
    name = service.catalogue.record(image_id).file or ""
    ImageFiles(Path(cloud.conf.images.directory)).path(name).write_bytes(DATA[::-1])
    with pytest.raises(ImageStoreError, match="checksum"):
        store.download(image, tmp_path / "rotten", lambda: None)
    seed = store.describe(SEED)
    with pytest.raises(ImageStoreError, match="has no data"):
        store.download(seed, tmp_path / "seed", lambda: None)
    with pytest.raises(ImageStoreError, match="not there"):
        store.describe(str(uuid.uuid4()))


def test_agents_with_the_role_service_reach_the_images_of_all_projects(cloud: Cloud, owner: User) -> None:
    agent = User(cloud.client, "agent", "services", "service", root="/image")
    image_id = made(owner)
    assert send(agent, "PUT", f"/v2/images/{image_id}/file", DATA, BYTES).status_code == 204
    assert fetch(agent, f"/v2/images/{image_id}/file").content == DATA


def test_data_that_is_on_another_machine_is_told_of(cloud: Cloud, owner: User) -> None:
    image_id = filled(owner)
    (name,) = (name for name in files(cloud) if name.startswith(image_id))
    (Path(cloud.conf.images.directory) / name).unlink()
    assert fetch(owner, f"/v2/images/{image_id}/file").status_code == 503
