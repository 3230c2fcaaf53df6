"""Key pairs of users."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from moorage.compute.keypairs import keys
from tests.support.compute import Cloud, cloud_on

PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAr9WcgBq3vYEaHVGy4bPYpIPTqYVbtF5kkDgyV1sXHS somebody@somewhere"


def imported(name: str, **more: str) -> dict[str, dict[str, str]]:
    return {"keypair": {"name": name, "public_key": PUBLIC, **more}}


def test_imported_key(cloud: Cloud) -> None:
    user = cloud.member("importer")
    made = user.post("/os-keypairs", imported("mine", type="ssh"))
    assert made.status == 201
    assert made.json["keypair"] == {
        "name": "mine",
        "type": "ssh",
        "public_key": PUBLIC,
        "fingerprint": keys.fingerprint("ssh", PUBLIC),
        "user_id": "importer",
    }
    shown = user.get("/os-keypairs/mine").json["keypair"]
    assert made.json["keypair"].items() <= shown.items()
    assert (shown["deleted"], shown["deleted_at"], shown["updated_at"]) == (False, None, None)
    listed = user.get("/os-keypairs").json["keypairs"]
    assert [set(item["keypair"]) for item in listed] == [{"name", "type", "public_key", "fingerprint"}]


def test_statuses_and_types_change_with_2_2(cloud: Cloud) -> None:
    user = cloud.member("old")
    old = user.at("2.1").post("/os-keypairs", imported("first"))
    assert old.status == 200
    assert "type" not in old.json["keypair"]
    assert user.at("2.1").post("/os-keypairs", imported("typed", type="ssh")).status == 400
    assert "type" not in user.at("2.1").get("/os-keypairs/first").json["keypair"]
    assert user.at("2.1").delete("/os-keypairs/first").status == 202
    assert user.at("2.2").post("/os-keypairs", imported("first", type="ssh")).status == 201
    assert user.at("2.2").delete("/os-keypairs/first").status == 204
    assert user.delete("/os-keypairs/first").fault[0] == "itemNotFound"


def test_ssh_key_is_made_before_2_92(cloud: Cloud) -> None:
    user = cloud.member("maker")
    body = {"keypair": {"name": "made"}}
    assert user.at("2.92").post("/os-keypairs", body).status == 400
    made = user.at("2.91").post("/os-keypairs", body).json["keypair"]
    private = serialization.load_pem_private_key(made["private_key"].encode(), None)
    public = serialization.load_ssh_public_key(made["public_key"].encode())
    assert private.public_key() == public
    assert "private_key" not in user.get("/os-keypairs/made").json["keypair"]


def test_certificate_is_made_and_imported(cloud: Cloud) -> None:
    user = cloud.member("windows").at("2.91")
    made = user.post("/os-keypairs", {"keypair": {"name": "cert", "type": "x509"}}).json["keypair"]
    certificate = x509.load_pem_x509_certificate(made["public_key"].encode())
    private = serialization.load_pem_private_key(made["private_key"].encode(), None)
    assert private.public_key() == certificate.public_key()
    body = {"keypair": {"name": "again", "type": "x509", "public_key": made["public_key"]}}
    assert user.post("/os-keypairs", body).json["keypair"]["fingerprint"] == made["fingerprint"]


def test_names_are_taken_once_a_user(cloud: Cloud) -> None:
    one, other = cloud.member("one"), cloud.member("other")
    assert one.post("/os-keypairs", imported("same")).status == 201
    assert one.post("/os-keypairs", imported("same")).fault == (
        "conflictingRequest",
        "Key pair 'same' already exists.",
    )
    assert other.post("/os-keypairs", imported("same")).status == 201
    assert other.get("/os-keypairs/mine").status == 404


@pytest.mark.parametrize("key", ["", "ssh-rsa", "ssh-rsa AAAA", "ssh-ed25519 !!! x", "no key at all", "ñ"])
def test_what_is_no_key_is_refused(cloud: Cloud, key: str) -> None:
    user = cloud.member("typo")
    body = {"keypair": {"name": "bad", "public_key": key}}
    assert user.post("/os-keypairs", body).fault[0] == "badRequest"
    assert user.get("/os-keypairs").json["keypairs"] == []


def test_names_take_more_characters_from_2_92_on(cloud: Cloud) -> None:
    user = cloud.member("names")
    assert user.at("2.91").post("/os-keypairs", imported("me@home.net")).status == 400
    assert user.at("2.92").post("/os-keypairs", imported("me@home.net")).status == 201
    assert user.get("/os-keypairs/me@home.net").status == 200
    for wrong in ("", " padded", "a/b", "x" * 256, "ümlaut"):
        assert user.post("/os-keypairs", imported(wrong)).status == 400


def test_administrators_may_name_a_user_from_2_10_on(cloud: Cloud) -> None:
    admin, user = cloud.admin, cloud.member("served")
    assert admin.at("2.9").post("/os-keypairs", imported("for", user_id="served")).status == 400
    assert (
        admin.post("/os-keypairs", imported("for", user_id="served")).json["keypair"]["user_id"] == "served"
    )
    assert user.get("/os-keypairs/for").status == 200
    assert admin.get("/os-keypairs?user_id=served").json["keypairs"][0]["keypair"]["name"] == "for"
    assert admin.at("2.9").get("/os-keypairs?user_id=served").json["keypairs"] == []
    assert user.get("/os-keypairs?user_id=root").fault[0] == "forbidden"
    assert user.post("/os-keypairs", imported("no", user_id="root")).fault[0] == "forbidden"
    assert admin.delete("/os-keypairs/for?user_id=served").status == 204
    assert user.get("/os-keypairs/for").status == 404


def test_pages_from_2_35_on(cloud: Cloud) -> None:
    user = cloud.member("pager")
    for name in ("c", "a", "b"):
        user.post("/os-keypairs", imported(name))

    def names(answer: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
        return [item["keypair"]["name"] for item in answer["keypairs"]]

    assert names(user.at("2.34").get("/os-keypairs?limit=1").json) == ["a", "b", "c"]
    first = user.get("/os-keypairs?limit=2").json
    assert names(first) == ["a", "b"]
    assert "marker=b" in first["keypairs_links"][0]["href"]
    assert names(user.get("/os-keypairs?limit=2&marker=b").json) == ["c"]
    assert names(user.get("/os-keypairs?limit=0").json) == []
    assert user.get("/os-keypairs?marker=z").status == 400
    assert user.at("2.74").get("/os-keypairs?colour=red").status == 200
    assert user.at("2.75").get("/os-keypairs?colour=red").status == 400


def test_quota_of_a_user(database_url: str) -> None:
    with cloud_on(database_url, {"quota.key_pairs": 1}) as cloud:
        user = cloud.member()
        assert user.post("/os-keypairs", imported("one")).status == 201
        assert user.post("/os-keypairs", imported("two")).fault == (
            "forbidden",
            "Quota exceeded, too many key pairs.",
        )


def test_quota_holds_when_many_ask_at_once(database_url: str) -> None:
    with cloud_on(database_url, {"quota.key_pairs": 3}) as cloud, ThreadPoolExecutor(8) as threads:
        user = cloud.member()
        answers = threads.map(
            lambda number: user.post("/os-keypairs", imported(f"k{number}")).status, range(12)
        )
        assert sorted(answers) == [201] * 3 + [403] * 9
        assert len(user.get("/os-keypairs").json["keypairs"]) == 3
