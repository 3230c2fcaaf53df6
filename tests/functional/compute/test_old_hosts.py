"""What the API has for old clients: hosts by name, months of audits, the list of extensions."""

from __future__ import annotations

from datetime import datetime

import pytest

from moorage.compute_api.hosts.audit_log import last_month
from tests.functional.compute.rows import add_node, add_server, add_service
from tests.support.compute import Cloud, User


def test_hosts_are_listed_until_2_43(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "listed")
    add_service(cloud, "listed", "nova-conductor")
    add_service(cloud, "off", disabled=True)
    old = admin.at("2.42")
    found = [one for one in old.get("/os-hosts").json["hosts"] if one["host_name"] in ("listed", "off")]
    assert found == [
        {"host_name": "listed", "service": "compute", "zone": "nova"},
        {"host_name": "listed", "service": "conductor", "zone": "internal"},
    ]
    internal = old.get("/os-hosts?zone=internal&colour=red").json["hosts"]
    assert {one["service"] for one in internal} == {"conductor"}
    assert admin.at("2.43").get("/os-hosts").status == 404
    assert admin.at("2.43").get("/os-hosts/listed").status == 404


def test_a_host_shows_what_it_has_and_what_projects_use_of_it(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "sized")
    node = add_node(cloud, "sized", "sized-1", vcpus=64, memory_mb=4096, local_gb=100)
    add_node(cloud, "sized", "sized-2", vcpus=1, memory_mb=1, local_gb=1)
    add_server(cloud, "one", "sized", node)
    add_server(cloud, "two", "sized", node, project_id="another")
    found = [one["resource"] for one in admin.at("2.1").get("/os-hosts/sized").json["host"]]
    assert {one.pop("host") for one in found} == {"sized"}
    assert found == [
        {"project": "(total)", "cpu": 64, "memory_mb": 4096, "disk_gb": 100},
        {"project": "(used_now)", "cpu": 4, "memory_mb": 1024, "disk_gb": 30},
        {"project": "(used_max)", "cpu": 4, "memory_mb": 1024, "disk_gb": 30},
        {"project": "another", "cpu": 2, "memory_mb": 512, "disk_gb": 15},
        {"project": "wonderland", "cpu": 2, "memory_mb": 512, "disk_gb": 15},
    ]
    assert admin.at("2.1").get("/os-hosts/unknown").status == 404


def test_a_host_is_disabled_and_enabled(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "switched")
    old = admin.at("2.1")
    for word, status in (("Disable", "disabled"), ("enable", "enabled")):
        answer = old.put("/os-hosts/switched", {"status": word})
        assert answer.json == {"host": "switched", "status": status}
        (service,) = admin.get("/os-services?host=switched").json["services"]
        assert service["status"] == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"maintenance_mode": "enable"}, 501),
        ({"status": "enable", "maintenance_mode": "disable"}, 501),
        ({"status": "on"}, 400),
        ({}, 400),
        ({"status": "enable", "colour": "red"}, 400),
    ],
)
def test_what_a_host_refuses(cloud: Cloud, admin: User, body: dict[str, str], status: int) -> None:
    add_service(cloud, f"refusing-{status}-{len(body)}-{body.get('status', '')}")
    path = f"/os-hosts/refusing-{status}-{len(body)}-{body.get('status', '')}"
    assert admin.at("2.1").put(path, body).status == status
    if status == 501:
        assert admin.at("2.1").put("/os-hosts/unknown", body).status == 404


@pytest.mark.parametrize("word", ["startup", "shutdown", "reboot"])
def test_no_driver_powers_hosts(cloud: Cloud, admin: User, word: str) -> None:
    add_service(cloud, f"powered-{word}")
    old = admin.at("2.1")
    assert old.get(f"/os-hosts/powered-{word}/{word}").fault[0] == "notImplemented"
    assert old.get(f"/os-hosts/unknown/{word}").status == 404
    assert admin.at("2.43").get(f"/os-hosts/powered-{word}/{word}").status == 404


def test_old_hosts_are_for_administrators(cloud: Cloud) -> None:
    member = cloud.member().at("2.1")
    for path in ("", "/h", "/h/reboot"):
        assert member.get(f"/os-hosts{path}").status == 403
    assert member.put("/os-hosts/h", {"status": "disable"}).status == 403
    assert member.get("/os-instance_usage_audit_log").status == 403


def test_no_host_has_reported_a_month(cloud: Cloud, admin: User) -> None:
    add_service(cloud, "auditless")
    log = admin.get("/os-instance_usage_audit_log").json["instance_usage_audit_logs"]
    assert "auditless" in log["hosts_not_run"]
    assert log["num_hosts"] == log["num_hosts_not_run"] == len(log["hosts_not_run"])
    assert log["overall_status"] == f"0 of {log['num_hosts']} hosts done. 0 errors."
    assert (log["log"], log["total_instances"], log["num_hosts_done"]) == ({}, 0, 0)
    asked = admin.get("/os-instance_usage_audit_log/2026-03-05%2011:00:00").json["instance_usage_audit_log"]
    assert (asked["period_beginning"], asked["period_ending"]) == (
        "2026-02-01 00:00:00",
        "2026-03-01 00:00:00",
    )
    assert admin.get("/os-instance_usage_audit_log/2026-03-05%2011:00:00.5").status == 200
    for nonsense in ("yesterday", "2026-03-05", "0001-01-01%2000:00:00"):
        assert admin.get(f"/os-instance_usage_audit_log/{nonsense}").status == 400


@pytest.mark.parametrize(
    ("before", "begin", "end"),
    [
        (datetime(2026, 3, 1), datetime(2026, 1, 1), datetime(2026, 2, 1)),
        (datetime(2026, 3, 1, 0, 0, 1), datetime(2026, 2, 1), datetime(2026, 3, 1)),
        (datetime(2026, 1, 31), datetime(2025, 12, 1), datetime(2026, 1, 1)),
        (datetime(2026, 2, 1), datetime(2025, 12, 1), datetime(2026, 1, 1)),
        (datetime(2026, 1, 1), datetime(2025, 11, 1), datetime(2025, 12, 1)),
    ],
)
def test_the_last_month_that_is_over(before: datetime, begin: datetime, end: datetime) -> None:
    assert last_month(before) == (begin, end)


def test_extensions(cloud: Cloud) -> None:
    member = cloud.member().at("2.1")
    found = member.get("/extensions").json["extensions"]
    assert len(found) == 99
    assert {"os-hosts", "os-services", "OS-EXT-STS", "NMN"} <= {one["alias"] for one in found}
    assert member.get("/extensions/os-keypairs").json["extension"]["name"] == "Keypairs"
    assert member.get("/extensions/colour").status == 404
    older = User(cloud.client, roles="member", version=None, root="/v2")
    aliases = [one["alias"] for one in older.get("/extensions").json["extensions"]]
    assert aliases == sorted(aliases)
    assert "OS-EXT-VIF-NET" in aliases
    assert len(aliases) == 100
    assert member.get("/extensions/OS-EXT-VIF-NET").status == 404
    assert cloud.admin.at("2.102").get("/extensions?colour=red").status == 400
