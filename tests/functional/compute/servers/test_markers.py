"""Where a list goes on tells nothing about what the caller may not see: names least of all."""

from __future__ import annotations

import pytest

from tests.functional.compute.servers.conftest import ABSENT, Cloud, User

NODE = "cccccccc-0000-4000-8000-000000000001"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJRnPOLvDn4wUuLDgDkIZcgVJTA3TkO7MqRGGxDQfkVW somebody"


def refused_alike(user: User, path: str, foreign: str, absent: str = ABSENT) -> None:
    """A marker that is somebody else's is answered as one that nobody has, to the letter."""
    there = user.call("GET", path.format(foreign))
    nowhere = user.call("GET", path.format(absent))
    assert nowhere.status_code == 400, nowhere.text
    assert there.status_code == 400, there.text
    assert there.text.replace(foreign, absent) == nowhere.text
    assert there.headers.keys() == nowhere.headers.keys()


@pytest.mark.parametrize("path", ["/servers", "/servers/detail"])
@pytest.mark.parametrize(
    "order", ["", "&sort_key=display_name&sort_dir=asc", "&sort_key=key_name", "&limit=1"]
)
def test_servers(cloud: Cloud, path: str, order: str) -> None:
    for name in ("a", "z"):
        cloud.alice.booted(name=name)
    foreign = cloud.bob.booted(name="m")
    refused_alike(cloud.alice, f"{path}?marker={{}}{order}", foreign)
    cloud.end(foreign)
    refused_alike(cloud.alice, f"{path}?marker={{}}{order}", foreign)
    since = "&changes-since=2001-01-01T00:00:00Z"
    refused_alike(cloud.alice, f"{path}?marker={{}}{order}{since}", foreign)


def test_an_administrator_may_go_on_anywhere(cloud: Cloud) -> None:
    alices, bobs = cloud.alice.booted(), cloud.bob.booted()
    assert cloud.admin.get(f"/servers?marker={bobs}") == {"servers": []}
    (left,) = cloud.admin.get(f"/servers?all_tenants=1&marker={bobs}")["servers"]
    assert left["id"] == alices


def test_a_list_goes_on_after_ones_own_server_that_was_deleted(cloud: Cloud) -> None:
    """As in the reference: it may be deleted between two pages."""
    first, second = cloud.alice.booted(name="first"), cloud.alice.booted(name="second")
    cloud.end(second)
    (left,) = cloud.alice.get(f"/servers?marker={second}")["servers"]
    assert left["id"] == first


def test_private_flavors(cloud: Cloud) -> None:
    refused_alike(cloud.alice, "/flavors?marker={}", "secret", "absent")
    refused_alike(cloud.alice, "/flavors/detail?marker={}&sort_key=name", "secret", "absent")
    refused_alike(cloud.alice, "/flavors?marker={}&is_public=None", "secret", "absent")
    assert cloud.admin.call("GET", "/flavors?marker=secret&is_public=None").status_code == 200


def test_key_pairs(cloud: Cloud) -> None:
    for user, name in ((cloud.alice, "mine"), (cloud.anna, "hers")):
        body = {"keypair": {"name": name, "type": "ssh", "public_key": KEY}}
        assert user.call("POST", "/os-keypairs", body).status_code == 201
    refused_alike(cloud.alice, "/os-keypairs?marker={}", "hers", "none")
    refused_alike(cloud.admin, "/os-keypairs?user_id=alice&marker={}", "hers", "none")
    cloud.alice.refused(403, "GET", "/os-keypairs?user_id=anna&marker=hers")


def moved(cloud: Cloud, user: User) -> tuple[str, str]:
    """A server that a manager of its project had migrated, and the migration."""
    uuid = user.booted()
    cloud.run(uuid, node_uuid=NODE)
    manager = user.with_roles("manager,member,reader")
    assert manager.call("POST", f"/servers/{uuid}/action", {"migrate": None}).status_code == 202
    (made,) = manager.get(f"/os-migrations?project_id={user.project}")["migrations"]
    return uuid, made["uuid"]


def test_migrations(cloud: Cloud) -> None:
    (_, alices), (_, bobs) = moved(cloud, cloud.alice), moved(cloud, cloud.bob)
    manager = cloud.alice.with_roles("manager,member,reader")
    refused_alike(manager, "/os-migrations?project_id=red&marker={}", bobs)
    assert manager.get(f"/os-migrations?project_id=red&marker={alices}") == {"migrations": []}
    assert len(cloud.admin.get(f"/os-migrations?marker={bobs}")["migrations"]) == 1


@pytest.mark.parametrize("query", ["host=host1", "host=nowhere", "source_compute=host1"])
def test_who_may_not_see_hosts_may_not_ask_by_them(cloud: Cloud, query: str) -> None:
    moved(cloud, cloud.alice)
    manager = cloud.alice.with_roles("manager,member,reader")
    (shown,) = manager.get("/os-migrations?project_id=red")["migrations"]
    assert shown["source_compute"] is None
    refused = manager.refused(403, "GET", f"/os-migrations?project_id=red&{query}")
    assert refused == "Policy does not allow os_compute_api:os-migrations:index:host to be performed."
    assert cloud.admin.call("GET", f"/os-migrations?{query}").status_code == 200


def test_actions(cloud: Cloud) -> None:
    """Requests have ids that another server's actions may have, too."""
    mine, foreign = cloud.alice.booted(), cloud.bob.booted()
    (action,) = cloud.bob.get(f"/servers/{foreign}/os-instance-actions")["instanceActions"]
    path = f"/servers/{mine}/os-instance-actions?marker={{}}"
    refused_alike(cloud.alice, path, action["request_id"], f"req-{ABSENT}")
