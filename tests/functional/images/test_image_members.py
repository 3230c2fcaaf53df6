"""Images that a project shares with others, who accept or reject them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from moorage.core import uuids
from moorage.core.clock import utcnow
from moorage.images.contract import ImageNotFoundError
from tests.functional.compute.rows import add_server
from tests.support.compute import Cloud, User, cloud_on


@pytest.fixture(scope="module")
def cloud(module_database_url: str) -> Iterator[Cloud]:
    with cloud_on(module_database_url) as running:
        yield running


@pytest.fixture
def owner(cloud: Cloud) -> User:
    return replace(cloud.member(), root="/image")


@pytest.fixture
def friend(cloud: Cloud) -> User:
    return replace(cloud.member("fred", "friends"), root="/image")


@pytest.fixture
def stranger(cloud: Cloud) -> User:
    return replace(cloud.member("eve", "elsewhere"), root="/image")


@pytest.fixture
def admin(cloud: Cloud) -> User:
    return replace(cloud.admin, root="/image")


def made(user: User, **fields: Any) -> str:
    answer = user.post("/v2/images", {"disk_format": "raw", "container_format": "bare", **fields})
    assert answer.status == 201, answer.text
    return f"/v2/images/{answer.json['id']}"


def seen(user: User, name: str, query: str = "") -> int:
    return len(user.get(f"/v2/images?name={name}{query}").json["images"])


def test_a_member_may_use_an_image_and_says_whether_it_is_listed(
    cloud: Cloud, owner: User, friend: User, stranger: User
) -> None:
    image = made(owner, name="lent")
    find = cloud.service.images.find
    image_id = image.rpartition("/")[2]
    with pytest.raises(ImageNotFoundError):
        find(image_id, project_id="friends")
    added = owner.post(f"{image}/members", {"member": "friends"})
    assert (added.status, added.json["status"], added.json["member_id"]) == (200, "pending", "friends")
    assert find(image_id, project_id="friends").owner == owner.project_id
    assert (friend.get(image).status, stranger.get(image).status) == (200, 404)
    assert (seen(friend, "lent"), seen(friend, "lent", "&member_status=pending")) == (0, 1)
    assert friend.put(f"{image}/members/friends", {"status": "accepted"}).json["status"] == "accepted"
    assert (seen(friend, "lent"), seen(friend, "lent", "&visibility=shared"), seen(stranger, "lent")) == (
        1,
        1,
        0,
    )
    assert friend.put(f"{image}/members/friends", {"status": "rejected"}).status == 200
    assert (seen(friend, "lent"), seen(friend, "lent", "&member_status=all")) == (0, 1)
    assert owner.delete(f"{image}/members/friends").status == 204
    assert friend.get(image).status == 404


def test_who_may_do_what_with_members(owner: User, friend: User, stranger: User, admin: User) -> None:
    image = made(owner, name="mine")
    for project in ("friends", "others"):
        assert owner.post(f"{image}/members", {"member": project}).status == 200
    told = [member["member_id"] for member in owner.get(f"{image}/members").json["members"]]
    assert told == [member["member_id"] for member in admin.get(f"{image}/members").json["members"]]
    assert sorted(told) == ["friends", "others"]
    assert [one["member_id"] for one in friend.get(f"{image}/members").json["members"]] == ["friends"]
    assert friend.get(f"{image}/members/friends").json["image_id"] == image.rpartition("/")[2]
    assert friend.get(f"{image}/members/others").status == 404
    assert friend.put(f"{image}/members/others", {"status": "accepted"}).status == 404
    assert friend.post(f"{image}/members", {"member": "elsewhere"}).status == 403
    assert friend.delete(f"{image}/members/friends").status == 403
    assert friend.delete(image).status == 403
    assert owner.put(f"{image}/members/friends", {"status": "accepted"}).status == 403
    assert admin.put(f"{image}/members/friends", {"status": "accepted"}).status == 200
    for path in (f"{image}/members", f"{image}/members/friends"):
        assert stranger.get(path).status == 404
    reader = replace(owner, roles="reader")
    assert reader.post(f"{image}/members", {"member": "elsewhere"}).status == 403


def test_what_is_wrong_with_members_is_told(owner: User) -> None:
    image = made(owner, name="wrong")
    wrong: list[Any] = [{}, {"member": ""}, {"member": 5}, {"member": "x" * 256}, []]
    for body in wrong:
        assert owner.post(f"{image}/members", body).status == 400
    assert owner.post(f"{image}/members", {"member": "friends"}).status == 200
    assert owner.post(f"{image}/members", {"member": "friends"}).status == 409
    assert owner.delete(f"{image}/members/nobody").status == 404
    private = made(owner, visibility="private")
    refused = owner.post(f"{private}/members", {"member": "friends"})
    assert (refused.status, "Only shared images have members" in refused.text) == (403, True)
    assert owner.get("/v2/images?member_status=perhaps").status == 400
    assert owner.get("/v2/schemas/members").status == 200


def test_an_image_has_so_many_members_and_no_more(owner: User) -> None:
    image = made(owner, name="popular")
    answers = [owner.post(f"{image}/members", {"member": f"p{number}"}).status for number in range(129)]
    assert answers == [*[200] * 128, 413]


def test_members_go_with_their_image(owner: User) -> None:
    image = made(owner, name="brief")
    owner.post(f"{image}/members", {"member": "friends"})
    assert owner.delete(image).status == 204
    again = owner.post("/v2/images", {"id": image.rpartition("/")[2], "name": "brief"})
    assert (again.status, owner.get(f"{image}/members").json["members"]) == (201, [])


@pytest.mark.parametrize("whose", ["the administrator", "the owner"])
def test_an_image_of_a_server_is_its_makers_and_the_servers_project_sees_it(
    cloud: Cloud, friend: User, stranger: User, whose: str
) -> None:
    whose_server = {"project_id": "friends", "user_id": "fred", "launched_at": utcnow()}
    server = add_server(cloud, "snapped", "host", uuids.generate(), **whose_server)
    maker = cloud.admin if whose == "the administrator" else cloud.member("fred", "friends")
    answer = maker.post(f"/servers/{server}/action", {"createImage": {"name": "snap"}})
    assert answer.status == 202, answer.text
    path = f"/v2/images/{answer.json['image_id']}"
    shown = friend.get(path).json
    visibility = "shared" if maker.project_id != "friends" else "private"
    assert (shown["owner"], shown["visibility"]) == (maker.project_id, visibility)
    assert "instance_owner" not in shown
    assert stranger.get(path).status == 404
