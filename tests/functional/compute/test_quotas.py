"""Quota sets, quota classes and limits."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.compute.quotas import usage
from moorage.db.tables.compute import quotas
from tests.functional.compute.rows import add_server
from tests.support.compute import Answer, Cloud, User, cloud_on

DEFAULTS = {
    "instances": 10,
    "cores": 20,
    "ram": 51200,
    "metadata_items": 128,
    "key_pairs": 100,
    "server_groups": 10,
    "server_group_members": 10,
}
FILES = {"injected_files": 5, "injected_file_content_bytes": 10240, "injected_file_path_bytes": 255}
NETWORKS = dict.fromkeys(("fixed_ips", "floating_ips", "security_groups", "security_group_rules"), -1)
FLAVOR = {"vcpus": 2, "ram": 512}


def set_quotas(user: User, project_id: str, query: str = "", **limits: Any) -> Answer:
    return user.put(f"/os-quota-sets/{project_id}{query}", {"quota_set": limits})


def use(cloud: Cloud, project_id: str, servers: int) -> None:
    """Count servers against a project as a boot would."""

    def count(connection: Connection) -> None:
        usage.lock(connection, project_id)
        usage.add(connection, project_id, usage.of_one(FLAVOR), servers)

    cloud.database.transact(count)


def test_what_is_shown_by_microversion(admin: User) -> None:
    for version, shown in (
        ("2.1", {**DEFAULTS, **FILES, **NETWORKS}),
        ("2.36", {**DEFAULTS, **FILES}),
        ("2.57", DEFAULTS),
    ):
        user = admin.at(version)
        for path in ("/os-quota-sets/shown", "/os-quota-sets/shown/defaults"):
            assert user.get(path).json == {"quota_set": {"id": "shown", **shown}}
        detail = user.get("/os-quota-sets/shown/detail").json["quota_set"]
        assert detail.pop("id") == "shown"
        assert detail == {name: {"limit": limit, "in_use": 0, "reserved": 0} for name, limit in shown.items()}


def test_set_and_forget(admin: User) -> None:
    changed = set_quotas(admin, "changing", instances=3, cores="-1", force=True)
    assert changed.json == {"quota_set": {**DEFAULTS, "instances": 3, "cores": -1}}
    assert admin.get("/os-quota-sets/changing").json["quota_set"]["instances"] == 3
    assert admin.get("/os-quota-sets/changing/defaults").json["quota_set"]["instances"] == 10
    assert set_quotas(admin, "changing", instances=4).json["quota_set"]["instances"] == 4
    assert admin.delete("/os-quota-sets/changing").status == 202
    assert admin.get("/os-quota-sets/changing").json["quota_set"] == {"id": "changing", **DEFAULTS}


def test_quotas_of_a_user(admin: User) -> None:
    set_quotas(admin, "team", instances=8)
    of_alice = "?user_id=alice"
    assert set_quotas(admin, "team", of_alice, instances=5).json["quota_set"]["instances"] == 5
    assert admin.get(f"/os-quota-sets/team{of_alice}").json["quota_set"]["instances"] == 5
    assert admin.get("/os-quota-sets/team?user_id=bob").json["quota_set"]["instances"] == 8
    assert set_quotas(admin, "team", of_alice, instances=9).fault == (
        "badRequest",
        "Quota limit 9 for instances must be less than or equal to 8.",
    )
    assert set_quotas(admin, "team", of_alice, instances=9, force="yes").status == 200
    admin.delete(f"/os-quota-sets/team{of_alice}")
    assert admin.get(f"/os-quota-sets/team{of_alice}").json["quota_set"]["instances"] == 8
    assert admin.get("/os-quota-sets/team").json["quota_set"]["instances"] == 8


def test_usage_is_shown_and_bounds_from_below(cloud: Cloud, admin: User) -> None:
    use(cloud, "using", 3)
    cloud.member(project_id="using").post(
        "/os-server-groups", {"server_group": {"name": "g", "policy": "affinity"}}
    )
    detail = admin.get("/os-quota-sets/using/detail").json["quota_set"]
    in_use = {name: detail[name]["in_use"] for name in ("instances", "cores", "ram", "server_groups")}
    assert in_use == {"instances": 3, "cores": 6, "ram": 1536, "server_groups": 1}
    refused = set_quotas(admin, "using", instances=2, ram=99999)
    assert "must be greater than or equal to already used and reserved 3." in refused.fault[1]
    assert admin.get("/os-quota-sets/using").json["quota_set"]["ram"] == DEFAULTS["ram"]
    assert set_quotas(admin, "using", instances=2, force=True).status == 200


def test_usage_of_a_user_is_counted_from_servers(cloud: Cloud, admin: User) -> None:
    add_server(cloud, "counted", "h", "n", project_id="counting", user_id="carol")
    detail = admin.get("/os-quota-sets/counting/detail?user_id=carol").json["quota_set"]
    assert [detail[name]["in_use"] for name in ("instances", "cores", "ram")] == [1, 2, 512]


@pytest.mark.parametrize(
    "wrong",
    [
        {"instances": -2},
        {"instances": "many"},
        {"instances": 2**31},
        {"instances": "9999999999"},
        {"instances": 1.5},
        {"colours": 3},
        {"fixed_ips": 5},
        {"injected_files": 5},
        {"force": "perhaps"},
    ],
)
def test_bad_quotas_change_nothing(cloud: Cloud, admin: User, wrong: dict[str, Any]) -> None:
    assert set_quotas(admin, "bad", **{"ram": 5, **wrong}).fault[0] == "badRequest"
    with cloud.database.read() as connection:
        assert connection.execute(sa.select(quotas).where(quotas.c.project_id == "bad")).first() is None


def test_bodies_by_microversion(admin: User) -> None:
    assert set_quotas(admin.at("2.35"), "old", fixed_ips=5).status == 200
    assert set_quotas(admin.at("2.36"), "old", fixed_ips=5).status == 400
    assert (
        set_quotas(admin.at("2.56"), "old", injected_file_path_bytes=99).json["quota_set"][
            "injected_file_path_bytes"
        ]
        == 99
    )
    assert admin.at("2.74").get("/os-quota-sets/old?colour=red").status == 200
    assert admin.at("2.75").get("/os-quota-sets/old?colour=red").status == 400


def test_classes(database_url: str) -> None:
    with cloud_on(database_url) as cloud:
        admin = cloud.admin
        path = "/os-quota-class-sets/default"
        old = admin.at("2.1").get(path).json["quota_class_set"]
        assert old["id"] == "default"
        assert "fixed_ips" in old
        assert "server_groups" not in old
        at_50 = admin.at("2.50").get(path).json["quota_class_set"]
        assert at_50 == {"id": "default", **DEFAULTS, **FILES}
        assert admin.get(path).json["quota_class_set"] == {"id": "default", **DEFAULTS}
        changed = admin.put(path, {"quota_class_set": {"instances": 4}}).json["quota_class_set"]
        assert changed == {**DEFAULTS, "instances": 4}
        assert admin.get("/os-quota-sets/any/defaults").json["quota_set"]["instances"] == 4
        assert admin.get("/os-quota-sets/any").json["quota_set"]["instances"] == 4
        admin.put("/os-quota-class-sets/gold", {"quota_class_set": {"instances": 50}})
        assert admin.get("/os-quota-sets/any").json["quota_set"]["instances"] == 4
        assert admin.put(path, {"quota_class_set": {"instances": "x"}}).status == 400
        assert admin.at("2.50").put(path, {"quota_class_set": {"fixed_ips": 1}}).status == 400
        assert cloud.member().get(path).status == 403


def test_a_class_returns_all_that_was_changed(database_url: str) -> None:
    with cloud_on(database_url) as cloud:
        path = "/os-quota-class-sets/default"
        counts = {"2.1": 12, "2.49": 12, "2.50": 10, "2.56": 10, "2.57": 7, "2.96": 7}
        for version, count in counts.items():
            admin = cloud.admin.at(version)
            before = admin.get(path).json["quota_class_set"]
            del before["id"]
            wanted = {name: bound + 3 for name, bound in before.items()}
            assert admin.put(path, {"quota_class_set": wanted}).json["quota_class_set"] == wanted
            assert admin.get(path).json["quota_class_set"] == {"id": "default", **wanted}
            assert len(wanted) == count
        old = cloud.admin.at("2.35").get("/os-quota-sets/any").json["quota_set"]
        assert [old[name] for name in NETWORKS] == [5, 5, 5, 5]  # -1, and 3 more twice


def test_limits_of_networks_are_kept_though_nothing_here_goes_by_them(admin: User) -> None:
    wanted: dict[str, Any] = {
        "fixed_ips": 7,
        "floating_ips": 0,
        "security_groups": -1,
        "security_group_rules": 4,
    }
    old = admin.at("2.35")
    changed = set_quotas(old, "wired", **wanted).json["quota_set"]
    assert {name: changed[name] for name in wanted} == wanted
    assert set_quotas(old, "wired", "?user_id=eve", fixed_ips=8).fault[0] == "badRequest"
    assert set_quotas(old, "wired", "?user_id=eve", fixed_ips=6).json["quota_set"]["fixed_ips"] == 6
    assert set_quotas(old, "bare", "?user_id=eve", fixed_ips=6).status == 200
    shown = old.get("/os-quota-sets/wired/detail").json["quota_set"]["fixed_ips"]
    assert shown == {"limit": 7, "in_use": 0, "reserved": 0}
    assert admin.delete("/os-quota-sets/wired").status == 202
    assert old.get("/os-quota-sets/wired").json["quota_set"]["fixed_ips"] == -1


def test_limits(cloud: Cloud, admin: User) -> None:
    use(cloud, "limited", 2)
    user = cloud.reader(project_id="limited")
    absolute = user.get("/limits").json["limits"]["absolute"]
    assert user.get("/limits").json["limits"]["rate"] == []
    assert absolute == {
        "maxTotalInstances": 10,
        "maxTotalCores": 20,
        "maxTotalRAMSize": 51200,
        "maxTotalKeypairs": 100,
        "maxServerMeta": 128,
        "maxServerGroups": 10,
        "maxServerGroupMembers": 10,
        "totalInstancesUsed": 2,
        "totalCoresUsed": 4,
        "totalRAMUsed": 1024,
        "totalServerGroupsUsed": 0,
    }
    assert admin.get("/limits?tenant_id=limited").json["limits"]["absolute"] == absolute
    assert cloud.member().get("/limits?tenant_id=limited").status == 403


def test_limits_by_microversion(cloud: Cloud) -> None:
    user = cloud.member(project_id="versions")

    def shown(version: str) -> set[str]:
        return set(user.at(version).get("/limits").json["limits"]["absolute"])

    networks = {
        "maxTotalFloatingIps",
        "maxSecurityGroups",
        "maxSecurityGroupRules",
        "totalFloatingIpsUsed",
        "totalSecurityGroupsUsed",
    }
    assert shown("2.35") - shown("2.36") == networks
    assert shown("2.38") - shown("2.39") == {"maxImageMeta"}
    assert shown("2.56") - shown("2.57") == {"maxPersonality", "maxPersonalitySize"}
    assert user.at("2.74").get("/limits?colour=red").status == 200
    assert user.at("2.75").get("/limits?colour=red").status == 400


def test_who_may_see_and_set(cloud: Cloud) -> None:
    own, reader = cloud.member(), cloud.reader()
    assert reader.get("/os-quota-sets/wonderland").status == 200
    assert reader.get("/os-quota-sets/wonderland/detail").status == 200
    assert own.get("/os-quota-sets/elsewhere").status == 403
    assert own.get("/os-quota-sets/elsewhere/defaults").status == 200
    assert set_quotas(own, "wonderland", instances=99).status == 403
    assert own.delete("/os-quota-sets/wonderland").status == 403
