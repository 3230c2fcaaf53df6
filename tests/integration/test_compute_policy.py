"""The Compute API's policies with a real Keystone's users, projects and scopes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from falcon import testing

from tests.lab.keystone import service as keystone_service
from tests.lab.keystone.service import Keystone
from tests.support.compute import cloud_on
from tests.support.profiles import ini

OWNER = "role:admin or user_id:%(user_id)s"
RULES = ("servers:show", "servers:delete", "server-metadata:create", "os-lock-server:lock")


@dataclass(frozen=True)
class Caller:
    client: testing.TestClient
    token: str

    def call(self, method: str, path: str, body: Any = None) -> testing.Result:
        headers = {"X-Auth-Token": self.token, "OpenStack-API-Version": "compute 2.96"}
        sent = {} if body is None else {"json": body}
        return self.client.simulate_request(method, path, headers=headers, **sent)


@dataclass(frozen=True)
class People:
    admin: Caller
    system: Caller
    """The administrator, with a token for the whole system."""
    alice: Caller
    anna: Caller
    """She works in alice's project."""
    bob: Caller
    server: str
    """Alice's: the path to it."""


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    started = keystone_service.start(tmp_path_factory.mktemp("keystone"))
    yield started
    started.stop()


def configure(directory: Path, keystone: Keystone) -> str:
    (directory / "policy.yaml").write_text("".join(f'"os_compute_api:{rule}": "{OWNER}"\n' for rule in RULES))
    itself = keystone.add_person("moorage", "service", "service")
    path = directory / "moorage.conf"
    path.write_text(
        ini(
            {
                "oslo_policy": {"policy_file": str(directory / "policy.yaml")},
                "keystone_authtoken": {
                    "www_authenticate_uri": keystone.url,
                    "auth_type": "password",
                    **itself.auth(keystone.url),
                },
            }
        )
    )
    return str(path)


@pytest.fixture(scope="module")
def people(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    directory = tmp_path_factory.mktemp("compute")
    members = [
        keystone.add_person(name, "member", project)
        for name, project in (("alice", "red"), ("anna", "red"), ("bob", "blue"))
    ]
    files = [configure(directory, keystone)]
    url = f"sqlite:///{directory / 'moorage.sqlite'}"
    with cloud_on(url, {"auth.strategy": "keystone"}, files) as cloud:
        admin = Caller(cloud.client, keystone.token(keystone.admin))
        alice, anna, bob = (Caller(cloud.client, keystone.token(member)) for member in members)
        flavor = {"name": "small", "id": "small", "ram": 4096, "vcpus": 1, "disk": 40}
        assert admin.call("POST", "/v2.1/flavors", {"flavor": flavor}).status_code == 200
        image = alice.call("GET", "/image/v2/images").json["images"][0]["id"]
        server = {"name": "hers", "flavorRef": "small", "imageRef": image, "networks": "none"}
        booted = alice.call("POST", "/v2.1/servers", {"server": server})
        assert booted.status_code == 202, booted.text
        system = Caller(cloud.client, keystone.system_token(keystone.admin))
        yield People(admin, system, alice, anna, bob, f"/v2.1/servers/{booted.json['server']['id']}")


def test_others_of_the_project_may_not_do_what_is_for_owners(people: People) -> None:
    requests = (
        ("GET", "", None),
        ("POST", "/metadata", {"metadata": {"a": "b"}}),
        ("POST", "/action", {"lock": None}),
        ("DELETE", "", None),
    )
    for method, path, body in requests:
        assert people.anna.call(method, people.server + path, body).status_code == 403
        assert people.bob.call(method, people.server + path, body).status_code == 404
    assert people.alice.call("POST", f"{people.server}/action", {"lock": None}).status_code == 202
    for owner in (people.alice, people.admin):
        assert owner.call("GET", people.server).json["server"]["locked"] is True
    assert people.anna.call("GET", f"{people.server}/ips").status_code == 200, "a rule that was left as it is"


def test_a_token_for_the_whole_system_is_of_no_use(people: People) -> None:
    """As with the reference: its rules are for tokens of projects, whatever the roles."""
    for path in ("/servers", "/servers/detail?all_tenants=1", "/os-services", "/os-hypervisors", "/limits"):
        assert people.system.call("GET", f"/v2.1{path}").status_code == 403
        assert people.admin.call("GET", f"/v2.1{path}").status_code == 200
    for method, path, body in (("GET", "", None), ("POST", "/action", {"lock": None}), ("DELETE", "", None)):
        assert people.system.call(method, people.server + path, body).status_code == 403
