"""The read part of the Image API, on the built-in catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from moorage.images.catalogue import SEEDS, Catalogue
from moorage.images.contract import ImageNotFoundError
from tests.support.compute import Answer, Cloud, User, cloud_on


@pytest.fixture(scope="module")
def cloud(module_database_url: str) -> Iterator[Cloud]:
    with cloud_on(module_database_url) as running:
        yield running


@pytest.fixture
def user(cloud: Cloud) -> User:
    return replace(cloud.reader(), root="/image")


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.text
    return [image["name"] for image in answer.json["images"]]


def test_versions_need_no_login(cloud: Cloud) -> None:
    root = cloud.client.simulate_get("/image")
    assert root.status_code == 300
    assert root.json["versions"][0]["status"] == "CURRENT"
    assert root.json["versions"][0]["links"][0]["href"].endswith("/image/v2/")
    assert cloud.client.simulate_get("/image/versions").json == root.json
    assert cloud.client.simulate_get("/image/v2/images").status_code == 401


def test_list_has_the_seeds(user: User) -> None:
    assert sorted(names(user.get("/v2/images"))) == sorted(SEEDS)
    image = user.get("/v2/images?sort=name:asc").json["images"][0]
    assert user.get(f"/v2/images/{image['id']}").json == image
    assert (image["status"], image["visibility"], image["min_disk"]) == ("active", "public", 1)
    assert image["os_distro"] == "cirros"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("name=cirros-0.6.3-x86_64-disk", 1),
        ("name=in:cirros-0.6.3-x86_64-disk,debian-12-generic-amd64", 2),
        ("name=no-such", 0),
        ("os_distro=ubuntu", 1),
        ("status=active", 3),
        ("visibility=public", 3),
        ("visibility=private", 0),
        ("size_min=400000000", 2),
        ("size_max=400000000", 1),
        ("os_hidden=false", 3),
        ("tag=old", 0),
    ],
)
def test_filters(user: User, query: str, found: int) -> None:
    assert len(names(user.get(f"/v2/images?{query}"))) == found


def test_order_and_pages(user: User) -> None:
    ascending = sorted(SEEDS)
    assert names(user.get("/v2/images?sort_key=name&sort_dir=asc")) == ascending
    assert names(user.get("/v2/images?sort=name:desc")) == ascending[::-1]
    assert names(user.get("/v2/images?sort=size:asc")) == ascending
    first = user.get("/v2/images?sort=name:asc&limit=2")
    assert names(first) == ascending[:2]
    rest = user.get(first.json["next"])
    assert names(rest) == ascending[2:]
    assert "next" not in rest.json
    for wrong in ("limit=x", "marker=no-such", "sort=colour:asc"):
        assert user.get(f"/v2/images?{wrong}").status == 400


def test_what_is_not_there(user: User) -> None:
    assert user.get("/v2/images/no-such").status == 404
    assert user.get("/v2/images/no-such/file").status == 404


def test_readers_change_nothing_and_nobody_deletes_a_seed(cloud: Cloud, user: User) -> None:
    image_id = user.get("/v2/images").json["images"][0]["id"]
    assert user.post("/v2/images", {"name": "mine"}).status == 403
    assert user.delete(f"/v2/images/{image_id}").status == 403
    assert replace(cloud.admin, root="/image").delete(f"/v2/images/{image_id}").status == 403
    assert user.get(f"/v2/images/{image_id}/file").status == 204, "a seed has no data"
    assert len(names(user.get("/v2/images"))) == len(SEEDS)


def test_schemas_describe_what_is_answered(user: User) -> None:
    schema = user.get("/v2/schemas/image").json
    assert {"id", "name", "status", "min_ram"} <= set(schema["properties"])
    assert user.get("/v2/schemas/images").json["name"] == "images"


def test_the_scheduler_sees_properties_as_text(cloud: Cloud, user: User) -> None:
    catalogue = cloud.service.images
    image_id = user.get("/v2/images?name=debian-12-generic-amd64").json["images"][0]["id"]
    image = catalogue.find(image_id)
    assert (image.min_disk, image.min_ram) == (3, 512)
    assert image.properties == {"hw_architecture": "x86_64", "os_distro": "debian"}
    with pytest.raises(ImageNotFoundError):
        catalogue.find("no-such")


def test_seeding_again_changes_nothing(cloud: Cloud, user: User) -> None:
    before = user.get("/v2/images").json
    Catalogue(cloud.database).seed()
    assert user.get("/v2/images").json == before
