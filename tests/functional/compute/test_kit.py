"""What all resources of the Compute API share: versions, headers, faults, mounts, login."""

from __future__ import annotations

import pytest

from tests.support.compute import Cloud, User


def test_root_lists_versions_without_login(cloud: Cloud) -> None:
    found = cloud.client.simulate_get("/")
    assert found.status_code == 200
    old, new = found.json["versions"]
    assert (old["id"], old["status"], old["version"]) == ("v2.0", "DEPRECATED", "")
    assert (new["id"], new["status"]) == ("v2.1", "CURRENT")
    assert (new["min_version"], new["version"]) == ("2.1", "2.104")
    assert new["links"][0]["href"].endswith("/v2.1/")


@pytest.mark.parametrize("path", ["/v2.1", "/v2.1/"])
def test_version_document(cloud: Cloud, path: str) -> None:
    version = cloud.client.simulate_get(path).json["version"]
    assert version["id"] == "v2.1"
    assert version["version"] == "2.104"
    assert version["media-types"][0]["base"] == "application/json"


def test_old_version_has_a_document_and_no_microversions(cloud: Cloud, admin: User) -> None:
    version = cloud.client.simulate_get("/v2/").json["version"]
    assert (version["id"], version["version"]) == ("v2.0", "")
    old = User(cloud.client, root="/v2").get("/os-keypairs")
    assert old.status == 200
    assert old.headers["openstack-api-version"] == "compute 2.1"


def test_path_without_version_offers_choices(cloud: Cloud) -> None:
    found = cloud.client.simulate_get("/flavors")
    assert found.status_code == 300
    assert [choice["links"][0]["href"].split("/", 3)[3] for choice in found.json["choices"]] == [
        "v2/flavors",
        "v2.1/flavors",
    ]


def test_both_version_headers_are_taken_and_answered(admin: User) -> None:
    by_standard = admin.at("2.61").get("/flavors")
    by_legacy = admin.at(None).call("GET", "/flavors", headers={"X-OpenStack-Nova-API-Version": "2.61"})
    for answer in (by_standard, by_legacy):
        assert answer.headers["openstack-api-version"] == "compute 2.61"
        assert answer.headers["x-openstack-nova-api-version"] == "2.61"
        assert "openstack-api-version" in answer.headers["vary"].lower()
        assert "x-openstack-nova-api-version" in answer.headers["vary"].lower()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/v2.1/flavors", 200), ("/v2.1/flavors/none", 404), ("/v2.1/nothing", 404), ("/v2/", 200)],
)
def test_every_answer_names_its_request_in_both_headers(cloud: Cloud, path: str, status: int) -> None:
    headers = {"x-auth-token": "admin", "x-compute-request-id": "req-mine"}
    found = cloud.client.simulate_get(path, headers=headers)
    assert found.status_code == status
    assert found.headers["x-compute-request-id"].startswith("req-")
    assert found.headers["x-compute-request-id"] == found.headers["x-openstack-request-id"] != "req-mine"


def test_a_refused_login_has_a_request_id_too(cloud: Cloud) -> None:
    found = cloud.client.simulate_get("/v2.1/flavors")
    assert found.status_code == 401
    assert found.headers["x-compute-request-id"] == found.headers["x-openstack-request-id"]


def test_standard_header_wins_over_legacy(admin: User) -> None:
    answer = admin.at("2.5").call("GET", "/flavors", headers={"X-OpenStack-Nova-API-Version": "2.61"})
    assert answer.headers["x-openstack-nova-api-version"] == "2.5"


def test_default_latest_and_wrong_versions(admin: User) -> None:
    assert admin.at(None).get("/flavors").headers["openstack-api-version"] == "compute 2.1"
    assert admin.at("latest").get("/flavors").headers["openstack-api-version"] == "compute 2.104"
    assert admin.at("2.105").get("/flavors").status == 406
    assert admin.at("two").get("/flavors").fault[0] == "badRequest"


def test_faults_have_the_keys_that_clients_know(admin: User) -> None:
    assert admin.get("/flavors/no-such").fault == ("itemNotFound", "Flavor no-such could not be found.")
    assert admin.get("/no-such").fault[0] == "itemNotFound"
    assert admin.call("PATCH", "/flavors").fault[0] == "itemNotFound"
    assert admin.post("/flavors", {"flavor": {}}).fault[0] == "badRequest"


def test_schema_refusal_names_the_field(admin: User) -> None:
    body = {"flavor": {"name": "wrong", "ram": "much", "vcpus": 1, "disk": 1}}
    key, sentence = admin.post("/flavors", body).fault
    assert key == "badRequest"
    assert sentence.startswith("Invalid input for field/attribute ram. Value: much.")


def test_login_is_needed(cloud: Cloud) -> None:
    found = cloud.client.simulate_get("/v2.1/flavors")
    assert found.status_code == 401
    assert found.json["unauthorized"]["code"] == 401


def test_policy_names_the_rule(cloud: Cloud) -> None:
    key, sentence = cloud.member().get("/os-services").fault
    assert key == "forbidden"
    assert "os_compute_api:os-services:list" in sentence


def test_project_in_the_url(cloud: Cloud) -> None:
    project = "a" * 32
    user = cloud.member(project_id=project)
    listed = user.get(f"/{project}/flavors")
    assert listed.status == 200
    stranger = user.get(f"/{'b' * 32}/flavors")
    assert stranger.fault[0] == "badRequest"
    assert "doesn't match" in stranger.fault[1]


def test_links_keep_project_and_drop_version_for_bookmarks(cloud: Cloud, admin: User) -> None:
    flavor = {"name": "linked", "id": "linked", "ram": 1, "vcpus": 1, "disk": 0}
    assert admin.post("/flavors", {"flavor": flavor}).status == 200
    project = "c" * 32
    shown = cloud.member(project_id=project).get(f"/{project}/flavors/linked").json["flavor"]
    by_rel = {link["rel"]: link["href"] for link in shown["links"]}
    assert by_rel["self"].endswith(f"/v2.1/{project}/flavors/linked")
    assert by_rel["bookmark"].endswith(f"falconframework.org/{project}/flavors/linked")
