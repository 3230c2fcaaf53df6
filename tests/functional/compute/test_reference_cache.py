"""What an API process keeps of flavors and quotas is never older than the last change, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.compute import Answer, Cloud, User, cloud_on


@pytest.fixture(scope="module")
def other(module_database_url: str, cloud: Cloud) -> Iterator[Cloud]:
    """A second API process of the same cloud."""
    with cloud_on(module_database_url) as running:
        yield running


def boot(user: User, flavorid: str) -> Answer:
    listed = user.client.simulate_get("/image/v2/images", headers={"X-Auth-Token": "ann:images"})
    image = next(one["id"] for one in listed.json["images"] if one["name"].startswith("cirros"))
    body = {"name": "s", "flavorRef": flavorid, "imageRef": image, "networks": "none"}
    return user.post("/servers", {"server": body})


def flavor(admin: User, name: str, **more: Any) -> None:
    wanted = {"name": name, "id": name, "vcpus": 1, "ram": 4096, "disk": 10, **more}
    assert admin.post("/flavors", {"flavor": wanted}).status == 200


def test_a_flavor_that_was_deleted_elsewhere_is_gone_here(cloud: Cloud, other: Cloud) -> None:
    member = cloud.member("ann", "of-flavors")
    assert boot(member, "brief").status == 400
    flavor(other.admin, "brief")
    assert boot(member, "brief").status == 202
    assert other.admin.delete("/flavors/brief").status == 202
    assert boot(member, "brief").status == 400
    flavor(other.admin, "brief", vcpus=2)
    uuid = boot(member, "brief").json["server"]["id"]
    assert member.get(f"/servers/{uuid}").json["server"]["flavor"]["vcpus"] == 2


def test_extra_specs_that_were_changed_elsewhere_hold_here(cloud: Cloud, other: Cloud) -> None:
    member = cloud.member("ann", "of-specs")
    flavor(other.admin, "special")

    def specs() -> Any:
        uuid = boot(member, "special").json["server"]["id"]
        return cloud.admin.get(f"/servers/{uuid}").json["server"]["flavor"]["extra_specs"]

    assert specs() == {}
    added = {"extra_specs": {"hw:cpu_policy": "dedicated"}}
    assert other.admin.post("/flavors/special/os-extra_specs", added).status == 200
    assert specs() == {"hw:cpu_policy": "dedicated"}
    assert other.admin.delete("/flavors/special/os-extra_specs/hw:cpu_policy").status == 200
    assert specs() == {}


def test_access_that_was_taken_elsewhere_is_lost_here(cloud: Cloud, other: Cloud) -> None:
    member = cloud.member("ann", "of-access")
    flavor(other.admin, "shy", **{"os-flavor-access:is_public": False})
    assert boot(member, "shy").status == 400
    for action, status in (("addTenantAccess", 202), ("removeTenantAccess", 400)):
        asked = {action: {"tenant": "of-access"}}
        assert other.admin.post("/flavors/shy/action", asked).status == 200
        assert boot(member, "shy").status == status


def test_quotas_that_were_set_elsewhere_hold_here(cloud: Cloud, other: Cloud) -> None:
    member = cloud.member("ann", "of-quotas")
    flavor(other.admin, "counted")
    assert boot(member, "counted").status == 202
    path = "/os-quota-sets/of-quotas"
    assert other.admin.put(path, {"quota_set": {"instances": 1}}).status == 200
    assert boot(member, "counted").status == 403
    assert other.admin.put(f"{path}?user_id=ann", {"quota_set": {"instances": 1}}).status == 200
    assert other.admin.put(path, {"quota_set": {"instances": 5}}).status == 200
    assert boot(member, "counted").status == 403
    assert other.admin.delete(path).status == 202
    assert boot(member, "counted").status == 202
