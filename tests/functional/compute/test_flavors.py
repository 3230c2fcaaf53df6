"""Flavors, their extra specs and who may use them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.compute import Answer, Cloud, User


def make(admin: User, flavor: str, **more: Any) -> Answer:
    size = {"name": flavor, "id": flavor, "ram": 512, "vcpus": 1, "disk": 1}
    return admin.post("/flavors", {"flavor": {**size, **more}})


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.text
    return [flavor["id"] for flavor in answer.json["flavors"]]


def test_created_flavor_is_shown_whole(admin: User) -> None:
    made = make(admin.at("2.1"), "whole", swap="64", rxtx_factor="2.5", **{"OS-FLV-EXT-DATA:ephemeral": 3})
    assert made.status == 200
    shown = admin.at("2.1").get("/flavors/whole").json["flavor"]
    assert shown == made.json["flavor"]
    del shown["links"]
    assert shown == {
        "id": "whole",
        "name": "whole",
        "ram": 512,
        "vcpus": 1,
        "disk": 1,
        "swap": 64,
        "rxtx_factor": 2.5,
        "OS-FLV-EXT-DATA:ephemeral": 3,
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": True,
    }


def test_id_is_made_up_where_none_is_given(admin: User) -> None:
    made = [make(admin, f"auto-{given}", id=given).json["flavor"]["id"] for given in (None, "auto")]
    assert all(len(flavor_id) == 36 for flavor_id in made)
    assert make(admin, "numbered", id=7).json["flavor"]["id"] == "7"


def test_microversions_of_the_body(admin: User) -> None:
    make(admin, "versions", description="small")
    admin.post("/flavors/versions/os-extra_specs", {"extra_specs": {"hw:cpu_policy": "shared"}})
    at_54, at_55, at_60, at_61, at_74, at_75 = (
        admin.at(version).get("/flavors/versions").json["flavor"]
        for version in ("2.54", "2.55", "2.60", "2.61", "2.74", "2.75")
    )
    assert "description" not in at_54
    assert at_55["description"] == "small"
    assert "extra_specs" not in at_60
    assert at_61["extra_specs"] == {"hw:cpu_policy": "shared"}
    assert (at_74["swap"], at_75["swap"]) == ("", 0)
    brief = admin.at("2.55").get("/flavors?limit=1000").json["flavors"]
    assert {"id", "name", "links", "description"} == set(brief[0])


def test_description_changes_from_2_55_on(admin: User) -> None:
    make(admin, "described")
    body = {"flavor": {"description": "for tests"}}
    assert admin.at("2.54").put("/flavors/described", body).status == 404
    assert admin.at("2.55").put("/flavors/described", body).json["flavor"]["description"] == "for tests"
    assert admin.put("/flavors/no-such", body).status == 404
    assert admin.put("/flavors/described", {"flavor": {"ram": 2}}).status == 400
    assert admin.at("2.54").post("/flavors", {"flavor": {"description": "x"}}).status == 400


def test_names_and_ids_are_taken_once(admin: User) -> None:
    make(admin, "once")
    assert make(admin, "once", id="other").fault == (
        "conflictingRequest",
        "Flavor with name once already exists.",
    )
    assert make(admin, "twice", id="once").fault[1] == "Flavor with ID once already exists."
    assert admin.get("/flavors/other").status == 404


@pytest.mark.parametrize(
    "wrong",
    [
        {"ram": 0},
        {"ram": "0"},
        {"vcpus": -1},
        {"disk": "99999999999"},
        {"disk": 2**31},
        {"name": ""},
        {"name": " padded "},
        {"id": "no/slash"},
        {"rxtx_factor": 0},
        {"rxtx_factor": "0"},
        {"os-flavor-access:is_public": "perhaps"},
        {"colour": "red"},
    ],
)
def test_bad_flavors_are_refused(admin: User, wrong: dict[str, Any]) -> None:
    before = ids(admin.get("/flavors?is_public=none"))
    assert make(admin, "wrong", **wrong).fault[0] == "badRequest"
    assert ids(admin.get("/flavors?is_public=none")) == before


def test_deleted_flavor_is_gone(admin: User) -> None:
    make(admin, "brief")
    assert admin.delete("/flavors/brief").status == 202
    assert admin.delete("/flavors/brief").fault == ("itemNotFound", "Flavor brief could not be found.")


def test_filters_sorting_and_pages(admin: User) -> None:
    for number in (3, 1, 2):
        make(admin, f"page-{number}", ram=number * 100_000, disk=number * 100_000)
    assert ids(admin.get("/flavors?minRam=200000")) == ["page-2", "page-3"]
    assert ids(admin.get("/flavors?minDisk=300000")) == ["page-3"]
    order = "/flavors?minRam=100000&sort_key=memory_mb&sort_dir=desc"
    assert ids(admin.get(order)) == ["page-3", "page-2", "page-1"]
    first = admin.get(f"{order}&limit=2")
    assert ids(first) == ["page-3", "page-2"]
    (link,) = first.json["flavors_links"]
    assert link["rel"] == "next"
    rest = admin.get("/flavors" + link["href"].split("/flavors")[1])
    assert ids(rest) == ["page-1"]
    assert "flavors_links" not in rest.json
    detail = admin.get("/flavors/detail?minRam=100000&limit=1").json
    assert "/flavors/detail?" in detail["flavors_links"][0]["href"]


@pytest.mark.parametrize(
    "query",
    [
        "limit=-1",
        "limit=x",
        "marker=no-such",
        "minRam=big",
        "minDisk=x",
        "is_public=x",
        "is_public=",
        "minRam=",
        "sort_key=colour",
    ],
)
def test_bad_queries_are_refused(admin: User, query: str) -> None:
    assert admin.at("2.1").get(f"/flavors?{query}").fault[0] == "badRequest"


def test_unknown_parameters_are_refused_from_2_75_on(admin: User) -> None:
    assert admin.at("2.74").get("/flavors?colour=red").status == 200
    assert admin.at("2.75").get("/flavors?colour=red").status == 400


def test_private_flavors(cloud: Cloud, admin: User) -> None:
    make(admin, "secret", **{"os-flavor-access:is_public": False})
    alice, stranger = cloud.member(), cloud.member("mallory", "elsewhere")
    assert alice.get("/flavors/secret").status == 404
    assert admin.get("/flavors/secret").status == 200
    assert "secret" not in ids(admin.get("/flavors"))
    assert ids(admin.get("/flavors?is_public=false")) == ["secret"]
    assert "secret" in ids(admin.get("/flavors?is_public=None"))
    grant = {"addTenantAccess": {"tenant": "wonderland"}}
    granted = admin.post("/flavors/secret/action", grant)
    assert granted.json == {"flavor_access": [{"flavor_id": "secret", "tenant_id": "wonderland"}]}
    assert admin.post("/flavors/secret/action", grant).status == 409
    assert alice.get("/flavors/secret").status == 200
    assert "secret" in ids(alice.get("/flavors?is_public=false"))
    assert stranger.get("/flavors/secret").status == 404
    assert admin.get("/flavors/secret/os-flavor-access").json == granted.json
    take = {"removeTenantAccess": {"tenant": "wonderland"}}
    assert admin.post("/flavors/secret/action", take).json == {"flavor_access": []}
    assert admin.post("/flavors/secret/action", take).status == 404
    assert alice.get("/flavors/secret").status == 404


def test_access_to_public_flavors(admin: User) -> None:
    make(admin, "open")
    assert admin.get("/flavors/open/os-flavor-access").fault[1] == (
        "Access list not available for public flavors."
    )
    grant = {"addTenantAccess": {"tenant": "wonderland"}}
    assert admin.at("2.7").post("/flavors/open/action", grant).status == 409
    assert admin.at("2.6").post("/flavors/open/action", grant).status == 200
    assert admin.post("/flavors/open/action", {"paint": {}}).status == 400


def test_extra_specs(admin: User) -> None:
    make(admin, "specs")
    path = "/flavors/specs/os-extra_specs"
    assert admin.post(path, {"extra_specs": {"colour": "red", "weight": 5}}).json == {
        "extra_specs": {"colour": "red", "weight": "5"}
    }
    assert admin.put(f"{path}/colour", {"colour": "blue"}).json == {"colour": "blue"}
    assert admin.put(f"{path}/colour", {"weight": "1"}).fault[1] == "Request body and URI mismatch"
    assert admin.get(path).json == {"extra_specs": {"colour": "blue", "weight": "5"}}
    assert admin.get(f"{path}/weight").json == {"weight": "5"}
    assert admin.delete(f"{path}/weight").status == 200
    assert admin.delete(f"{path}/weight").status == 404
    assert admin.get(f"{path}/weight").fault[1] == "Flavor specs has no extra specs with key weight."
    assert admin.post("/flavors/no-such/os-extra_specs", {"extra_specs": {}}).status == 404


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hw:cpu_polciy", "dedicated"),
        ("hw:cpu_policy", "sometimes"),
        ("resources:VCPU", "few"),
        ("trait:HW_CPU_X86_AVX", "wanted"),
        ("group_policy", "maybe"),
    ],
)
def test_specs_of_known_namespaces_are_checked_from_2_86_on(admin: User, name: str, value: str) -> None:
    make(admin, "checked")
    body = {"extra_specs": {name: value}}
    assert admin.at("2.86").post("/flavors/checked/os-extra_specs", body).fault[0] == "badRequest"
    assert admin.at("2.86").get("/flavors/checked/os-extra_specs").json == {"extra_specs": {}}
    assert admin.at("2.85").post("/flavors/checked/os-extra_specs", body).status == 200
    admin.delete(f"/flavors/checked/os-extra_specs/{name}")


def test_good_specs_pass_the_check(admin: User) -> None:
    make(admin, "good")
    specs = {
        "hw:numa_nodes": "2",
        "hw:numa_cpus.0": "0-3,^2",
        "resources1:CUSTOM_GOLD": "1",
        "trait_NIC:CUSTOM_RED": "forbidden",
        "quota:disk_read_iops_sec": "100",
        "somebody:else": "anything",
        "bare": "too",
    }
    assert admin.post("/flavors/good/os-extra_specs", {"extra_specs": specs}).json == {"extra_specs": specs}


@pytest.mark.parametrize("key", ["", "a" * 256, "slash/ed", "tab\t"])
def test_bad_spec_keys_are_refused(admin: User, key: str) -> None:
    make(admin, "keys")
    assert admin.post("/flavors/keys/os-extra_specs", {"extra_specs": {key: "x"}}).status == 400


def test_who_may_do_what(cloud: Cloud, admin: User) -> None:
    make(admin, "policy")
    member, reader = cloud.member(), cloud.reader()
    assert reader.get("/flavors").status == 200
    assert reader.get("/flavors/policy/os-extra_specs").status == 200
    assert "extra_specs" in reader.get("/flavors/policy").json["flavor"]
    nobody = User(cloud.client, "eve", "nowhere", "guest")
    assert nobody.get("/flavors/policy/os-extra_specs").status == 403
    assert "extra_specs" not in nobody.get("/flavors/policy").json["flavor"]
    for refused in (
        make(member, "mine"),
        member.put("/flavors/policy", {"flavor": {"description": "x"}}),
        member.delete("/flavors/policy"),
        member.get("/flavors/policy/os-flavor-access"),
        member.post("/flavors/policy/action", {"addTenantAccess": {"tenant": "wonderland"}}),
        member.post("/flavors/policy/os-extra_specs", {"extra_specs": {"a": "b"}}),
        member.put("/flavors/policy/os-extra_specs/a", {"a": "b"}),
        member.delete("/flavors/policy/os-extra_specs/a"),
    ):
        assert refused.fault[0] == "forbidden"
