"""Placement behind a real Keystone: who gets in, what each may see, and life while Keystone is away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import requests

from moorage.cli import settings
from moorage.placement.client.probe import PlacementHealth, PlacementProbe, probe
from tests.integration.clouds import NODE, add_node, keystone_clouds
from tests.lab.client.openstack import ClientError, openstack, without_cloud
from tests.lab.keystone import service as keystone_service
from tests.lab.keystone.service import Keystone, Person
from tests.support import moorage
from tests.support.processes import Service, free_port
from tests.support.profiles import ini

CONSUMER = "c0000000-0000-4000-8000-000000000001"
PROJECT_USAGES = "/usages?project_id={}"


@dataclass(frozen=True)
class People:
    admin: Person
    nova: Person
    """Another service of the cloud: the role `service`, and no other."""
    reader: Person
    outsider: Person
    """A member of another project."""


@dataclass(frozen=True)
class Cloud:
    keystone: Keystone
    placement: Service
    people: People
    clouds_file: Path

    def get(self, path: str, token: str | None, version: str = "1.39") -> requests.Response:
        headers = {"OpenStack-API-Version": f"placement {version}"}
        if token is not None:
            headers["X-Auth-Token"] = token
        return requests.get(f"{self.placement.url}{path}", headers=headers, timeout=60)

    def get_as(self, person: Person, path: str) -> requests.Response:
        return self.get(path, self.keystone.token(person))


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keystone]:
    started = keystone_service.start(tmp_path_factory.mktemp("keystone"))
    yield started
    started.stop()


@pytest.fixture(scope="module")
def cloud(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """Keystone, Placement, a node, and a server of the project `demo` that uses 3 of its cores."""
    directory = tmp_path_factory.mktemp("placement")
    people = People(
        admin=keystone.admin,
        nova=keystone.add_person("nova", "service", "service"),
        reader=keystone.add_person("reader", "reader", "demo"),
        outsider=keystone.add_person("outsider", "member", "elsewhere"),
    )
    port = free_port()
    keystone.add_service("placement", "placement", f"http://127.0.0.1:{port}")
    clouds_file = directory / "clouds.yaml"
    clouds_file.write_text(keystone_clouds(keystone, people.admin, people.outsider))
    config = configure(directory, keystone, keystone.add_person("placement", "service", "service"))
    moorage.sync_database(config)
    with moorage.start(config, workers=1, port=port) as placement:
        node_headers = {"X-Auth-Token": keystone.token(people.nova)}
        add_node(placement.url, node_headers)
        claim(placement.url, node_headers, people.reader.project_id)
        yield Cloud(keystone, placement, people, clouds_file)


def configure(directory: Path, keystone: Keystone, itself: Person) -> Path:
    return moorage.configure(
        directory,
        f"sqlite:///{directory / 'moorage.sqlite'}",
        {
            "auth": {"strategy": "keystone"},
            "keystone_authtoken": {
                "www_authenticate_uri": keystone.url,
                "auth_type": "password",
                "http_request_max_retries": "1",  # waits half a second; more would only make the test slow
                **itself.auth(keystone.url),
            },
        },
    )


def claim(url: str, headers: dict[str, str], project_id: str) -> None:
    body = {
        "allocations": {NODE: {"resources": {"VCPU": 3}}},
        "project_id": project_id,
        "user_id": "somebody",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    versioned = {**headers, "OpenStack-API-Version": "placement 1.39"}
    answer = requests.put(f"{url}/allocations/{CONSUMER}", json=body, headers=versioned, timeout=30)
    assert answer.status_code == 204, answer.text


@pytest.mark.parametrize("token", [None, "", "nonsense", "gAAAAABnonsense"])
def test_without_a_valid_token_nobody_gets_in(cloud: Cloud, token: str | None) -> None:
    answer = cloud.get("/resource_providers", token)
    assert answer.status_code == 401
    assert cloud.keystone.url in answer.headers["WWW-Authenticate"]
    assert answer.headers["x-openstack-request-id"].startswith("req-")


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics"])
def test_the_version_document_and_the_monitor_need_no_token(cloud: Cloud, path: str) -> None:
    assert cloud.get(path, None).status_code == 200


def test_a_caller_cannot_say_itself_who_it_is(cloud: Cloud) -> None:
    """Headers that the middleware sets are worth nothing when they come from outside."""
    forged = {"X-Auth-Token": cloud.keystone.token(cloud.people.outsider), "X-Roles": "admin"}
    answer = requests.get(f"{cloud.placement.url}/resource_providers", headers=forged, timeout=30)
    assert answer.status_code == 403


@pytest.mark.parametrize("name", ["admin", "nova"])
def test_administrators_and_services_may_do_everything(cloud: Cloud, name: str) -> None:
    person: Person = getattr(cloud.people, name)
    found = cloud.get_as(person, "/resource_providers")
    assert [provider["uuid"] for provider in found.json()["resource_providers"]] == [NODE]
    usages = cloud.get_as(person, PROJECT_USAGES.format(cloud.people.reader.project_id))
    assert usages.status_code == 200


def test_a_reader_sees_what_its_own_project_uses(cloud: Cloud) -> None:
    reader = cloud.people.reader
    own = cloud.get_as(reader, PROJECT_USAGES.format(reader.project_id))
    assert own.json() == {"usages": {"INSTANCE": {"consumer_count": 1, "VCPU": 3}}}


def test_a_reader_sees_nothing_else(cloud: Cloud) -> None:
    reader = cloud.people.reader
    other = cloud.get_as(reader, PROJECT_USAGES.format(cloud.people.outsider.project_id))
    assert other.status_code == 403
    for path in (
        "/resource_providers",
        f"/allocations/{CONSUMER}",
        "/allocation_candidates?resources=VCPU:1",
    ):
        assert cloud.get_as(reader, path).status_code == 403


def test_an_outsider_sees_nothing(cloud: Cloud) -> None:
    outsider = cloud.people.outsider
    for path in ("/resource_providers", PROJECT_USAGES.format(cloud.people.reader.project_id)):
        answer = cloud.get_as(outsider, path)
        assert answer.status_code == 403
        assert "Policy does not allow" in answer.json()["errors"][0]["detail"]


def test_a_token_for_the_whole_system_is_of_no_use(cloud: Cloud) -> None:
    """As with the reference: its rules are for tokens of projects."""
    token = cloud.keystone.system_token(cloud.people.admin)
    for path in ("/resource_providers", PROJECT_USAGES.format(cloud.people.reader.project_id)):
        assert cloud.get(path, token).status_code == 403


def test_the_client_finds_placement_in_the_catalogue(cloud: Cloud) -> None:
    listed = openstack(cloud.clouds_file, "admin", "resource", "provider", "list")
    assert [provider["uuid"] for provider in listed] == [NODE]
    candidates = openstack(
        *(cloud.clouds_file, "admin", "--os-placement-api-version", "1.39"),
        *("allocation", "candidate", "list", "--resource", "VCPU=4"),
    )
    assert [candidate["resource provider"] for candidate in candidates] == [NODE]


def test_the_client_tells_an_outsider_that_it_may_not(cloud: Cloud) -> None:
    with pytest.raises(ClientError, match="Policy does not allow"):
        openstack(cloud.clouds_file, "outsider", "resource", "provider", "list")


def test_our_own_commands_take_a_keystone_cloud(cloud: Cloud) -> None:
    command = [str(Path(sys.executable).parent / "moorage"), "placement", "capacity", "resources=VCPU:1"]
    ran = subprocess.run(
        [*command, "--json", "--cloud", "admin"],
        env={**without_cloud(os.environ), "OS_CLIENT_CONFIG_FILE": str(cloud.clouds_file)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout)["total"] == 13


def looked_at_by(cloud: Cloud, directory: Path, person: Person, **more: str) -> PlacementProbe:
    """What a service that has these credentials finds when it starts."""
    section = {"auth_type": "password", **person.auth(cloud.keystone.url), **more}
    path = directory / "client.conf"
    path.write_text(ini({"placement_client": section}))
    return probe(settings.read([path]))


def test_a_service_finds_out_whether_it_gets_in(cloud: Cloud, tmp_path: Path) -> None:
    found = looked_at_by(cloud, tmp_path, cloud.people.nova)
    assert (found.health, found.version) == (PlacementHealth.READY, (1, 39))
    for denied, reason in (
        (looked_at_by(cloud, tmp_path, cloud.people.nova, password="wrong"), "Keystone gives no access"),
        (looked_at_by(cloud, tmp_path, cloud.people.outsider), "status 403"),
        (looked_at_by(cloud, tmp_path, cloud.people.nova, service_type="plaice"), "Keystone gives no access"),
    ):
        assert denied.health is PlacementHealth.DENIED
        assert reason in denied.sentence
    elsewhere = f"http://127.0.0.1:{free_port()}"
    assert (
        looked_at_by(cloud, tmp_path, cloud.people.nova, auth_url=elsewhere).health
        is PlacementHealth.UNREACHABLE
    )


def test_while_keystone_is_away_callers_are_told_and_the_service_stays(cloud: Cloud) -> None:
    """The last test of the file: a token that was seen before would still be remembered."""
    fresh = cloud.keystone.token(cloud.people.admin)
    cloud.keystone.stop()
    refused = cloud.get("/resource_providers", fresh)
    assert refused.status_code == 503
    assert cloud.get("/resource_providers", None).status_code == 401
    assert cloud.get("/healthz", None).status_code == 200
    cloud.keystone.start_again()
    assert cloud.get("/resource_providers", fresh).status_code == 200
