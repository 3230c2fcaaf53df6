"""Policies know whose a thing is: what is allowed to owners, others of the project may not do."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from moorage.http.auth import hash_password
from tests.functional.compute.servers.conftest import Cloud
from tests.support.compute import cloud_on

OWNER = "role:admin or user_id:%(user_id)s"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJRnPOLvDn4wUuLDgDkIZcgVJTA3TkO7MqRGGxDQfkVW somebody"
ACTIONS: dict[str, tuple[str, Any]] = {
    "servers:reboot": ("reboot", {"type": "SOFT"}),
    "servers:stop": ("os-stop", None),
    "servers:rebuild": ("rebuild", {"imageRef": "aaaaaaaa-0000-4000-8000-000000000001"}),
    "servers:resize": ("resize", {"flavorRef": "big"}),
    "os-lock-server:lock": ("lock", None),
    "os-lock-server:unlock": ("unlock", None),
    "os-deferred-delete:force": ("forceDelete", None),
}
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "servers:show": ("GET", "", None),
    "servers:update": ("PUT", "", {"server": {"name": "two"}}),
    "servers:delete": ("DELETE", "", None),
    "server-metadata:index": ("GET", "/metadata", None),
    "server-metadata:create": ("POST", "/metadata", {"metadata": {"a": "b"}}),
    "server-metadata:update_all": ("PUT", "/metadata", {"metadata": {"a": "b"}}),
    "os-server-tags:index": ("GET", "/tags", None),
    "os-server-tags:update": ("PUT", "/tags/red", None),
    "os-server-tags:delete_all": ("DELETE", "/tags", None),
    "os-instance-actions:list": ("GET", "/os-instance-actions", None),
    "os-attach-interfaces:list": ("GET", "/os-interface", None),
    "os-security-groups:list": ("GET", "/os-security-groups", None),
    "ips:index": ("GET", "/ips", None),
    **{rule: ("POST", "/action", {name: argument}) for rule, (name, argument) in ACTIONS.items()},
}
OTHERS = (
    *("os-server-groups:show", "os-server-groups:delete", "os-keypairs:show", "os-keypairs:delete"),
    *("os-extended-server-attributes", "servers:show:host_status"),
)


def policy_file(directory: Path, rules: dict[str, str]) -> str:
    """A configuration that has this policy."""
    lines = [f'"os_compute_api:{name}": "{check}"\n' for name, check in rules.items()]
    (directory / "policy.yaml").write_text("".join(lines))
    configured = directory / "policy.conf"
    configured.write_text(f"[oslo_policy]\npolicy_file = {directory / 'policy.yaml'}\n")
    return str(configured)


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """The databases have no part in this."""
    return sqlite_url


@pytest.fixture
def configuration(tmp_path: Path) -> list[str]:
    return [policy_file(tmp_path, dict.fromkeys((*REQUESTS, *OTHERS), OWNER))]


@pytest.fixture
def uuid(cloud: Cloud) -> str:
    """A running server of alice's."""
    made = cloud.alice.booted()
    cloud.run(made, node_uuid="cccccccc-0000-4000-8000-000000000001")
    return made


@pytest.mark.parametrize("rule", REQUESTS)
def test_only_the_owner_may(cloud: Cloud, uuid: str, rule: str) -> None:
    method, path, body = REQUESTS[rule]
    before = cloud.server(uuid)
    refused = cloud.anna.refused(403, method, f"/servers/{uuid}{path}", body)
    assert refused == f"Policy does not allow os_compute_api:{rule} to be performed."
    assert cloud.server(uuid) == before
    allowed = cloud.alice.call(method, f"/servers/{uuid}{path}", body)
    assert allowed.status_code < 300, allowed.text


def test_an_administrator_may(cloud: Cloud, uuid: str) -> None:
    assert cloud.admin.call("DELETE", f"/servers/{uuid}").status_code == 204


def test_a_server_of_another_project_is_not_there(cloud: Cloud, uuid: str) -> None:
    for rule, (method, path, body) in REQUESTS.items():
        refused = cloud.bob.refused(404, method, f"/servers/{uuid}{path}", body)
        assert refused == f"Instance {uuid} could not be found.", rule


def test_server_groups_have_owners(cloud: Cloud) -> None:
    body = {"server_group": {"name": "mine", "policy": "affinity"}}
    made = cloud.alice.call("POST", "/os-server-groups", body).json["server_group"]["id"]
    for method in ("GET", "DELETE"):
        cloud.anna.refused(403, method, f"/os-server-groups/{made}")
        cloud.bob.refused(404, method, f"/os-server-groups/{made}")
    assert cloud.alice.call("GET", f"/os-server-groups/{made}").status_code == 200
    assert cloud.alice.call("DELETE", f"/os-server-groups/{made}").status_code == 204


def test_key_pairs_belong_to_users(cloud: Cloud) -> None:
    body = {"keypair": {"name": "mine", "type": "ssh", "public_key": KEY}}
    assert cloud.alice.call("POST", "/os-keypairs", body).status_code == 201
    for method in ("GET", "DELETE"):
        cloud.anna.refused(403, method, "/os-keypairs/mine?user_id=alice")
        cloud.anna.refused(404, method, "/os-keypairs/mine")
    assert cloud.alice.call("DELETE", "/os-keypairs/mine").status_code == 204


def test_a_list_shows_more_of_ones_own(cloud: Cloud, uuid: str) -> None:
    """A rule about what is shown is asked for each server, not once for the list."""
    cloud.run(cloud.anna.booted())
    shown = {server["user_id"]: server for server in cloud.alice.get("/servers/detail")["servers"]}
    assert shown["alice"]["OS-EXT-SRV-ATTR:host"] == "host1"
    assert shown["alice"]["host_status"] == "UP"
    assert not shown["anna"].keys() & {"OS-EXT-SRV-ATTR:host", "host_status"}


class Basic:
    """Somebody with a password: an administrator, in a project of one's own."""

    def __init__(self, client: falcon.testing.TestClient, name: str) -> None:
        self._client = client
        token = base64.b64encode(f"{name}:{name}-secret".encode()).decode()
        self.headers = {"Authorization": f"Basic {token}", "OpenStack-API-Version": "compute 2.96"}

    def call(self, method: str, path: str, body: Any = None) -> falcon.testing.Result:
        sent = {} if body is None else {"json": body}
        return self._client.simulate_request(method, f"/v2.1{path}", headers=self.headers, **sent)


@pytest.fixture
def passwords(sqlite_url: str, tmp_path: Path) -> Iterator[falcon.testing.TestClient]:
    """A cloud whose users have passwords, where only owners may see or delete what is theirs."""
    lines = [f"{name}:{hash_password(f'{name}-secret')}\n" for name in ("alice", "anna")]
    (tmp_path / "htpasswd").write_text("".join(lines))
    named = [f"{thing}:{verb}" for thing in ("servers", "os-server-groups") for verb in ("show", "delete")]
    rules = dict.fromkeys(named, "user_id:%(user_id)s")
    overrides: dict[str, object] = {
        "auth.strategy": "basic",
        "auth.basic_auth_file": str(tmp_path / "htpasswd"),
    }
    with cloud_on(sqlite_url, overrides, [policy_file(tmp_path, rules)]) as running:
        yield running.client


def test_users_with_passwords_have_ids_too(passwords: falcon.testing.TestClient) -> None:
    """All of them are administrators, and see each other's servers."""
    alice, anna = Basic(passwords, "alice"), Basic(passwords, "anna")
    flavor = {"name": "small", "id": "small", "ram": 4096, "vcpus": 1, "disk": 40}
    assert alice.call("POST", "/flavors", {"flavor": flavor}).status_code == 200
    image = passwords.simulate_get("/image/v2/images", headers=alice.headers).json["images"][0]["id"]
    server = {"name": "mine", "flavorRef": "small", "imageRef": image, "networks": "none"}
    group = {"name": "mine", "policy": "affinity"}
    booted = alice.call("POST", "/servers", {"server": server})
    assert booted.status_code == 202, booted.text
    grouped = alice.call("POST", "/os-server-groups", {"server_group": group})
    made = (booted.json["server"]["id"], grouped.json["server_group"]["id"])
    for path in (f"/servers/{made[0]}", f"/os-server-groups/{made[1]}"):
        for method in ("GET", "DELETE"):
            assert anna.call(method, path).status_code == 403
        assert alice.call("GET", path).status_code == 200
        assert alice.call("DELETE", path).status_code == 204
