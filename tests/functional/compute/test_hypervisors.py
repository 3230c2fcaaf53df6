"""Hypervisors: the nodes of all hosts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.core import uuids
from tests.functional.compute.rows import add_node, add_server, add_service
from tests.support.compute import Answer, Cloud, User, cloud_on

FACTS = {
    "hypervisor_version": 1000,
    "host_ip": "127.0.0.1",
    "cpu_info": {"arch": "x86_64"},
    "vcpus": 16,
    "memory_mb": 8192,
    "local_gb": 100,
}


class Fleet:
    """Two hosts with three nodes, and two servers on the first of them."""

    def __init__(self, cloud: Cloud) -> None:
        self.admin: User = cloud.admin
        self.cloud = cloud
        self.service = add_service(cloud, "host-a", disabled=True, disabled_reason="rain")
        add_service(cloud, "host-b", age=1000)
        self.first = add_node(cloud, "host-a", "node-a1", **FACTS)
        self.second = add_node(cloud, "host-b", "node-b1", **FACTS, uptime="3 days")
        self.third = add_node(cloud, "host-b", "node-b2", **FACTS)
        add_node(cloud, "host-c", "node-of-no-service", **FACTS)
        self.servers = [
            add_server(cloud, "one", "host-a", self.first),
            add_server(cloud, "two", "host-a", self.first, task_state="powering-off"),
        ]


@pytest.fixture(scope="module")
def fleet(module_database_url: str) -> Iterator[Fleet]:
    with cloud_on(module_database_url) as cloud:
        yield Fleet(cloud)


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.text
    return [hypervisor["hypervisor_hostname"] for hypervisor in answer.json["hypervisors"]]


def test_list(fleet: Fleet) -> None:
    listed = fleet.admin.get("/os-hypervisors")
    assert listed.json["hypervisors"] == [
        {"id": fleet.first, "hypervisor_hostname": "node-a1", "state": "up", "status": "disabled"},
        {"id": fleet.second, "hypervisor_hostname": "node-b1", "state": "down", "status": "enabled"},
        {"id": fleet.third, "hypervisor_hostname": "node-b2", "state": "down", "status": "enabled"},
    ]
    assert all(
        isinstance(one["id"], int)
        for one in fleet.admin.at("2.52").get("/os-hypervisors").json["hypervisors"]
    )


def test_details_before_2_88(fleet: Fleet) -> None:
    shown = fleet.admin.at("2.87").get(f"/os-hypervisors/{fleet.first}").json["hypervisor"]
    assert shown == {
        "id": fleet.first,
        "hypervisor_hostname": "node-a1",
        "state": "up",
        "status": "disabled",
        "hypervisor_type": "fake",
        "hypervisor_version": 1000,
        "host_ip": "127.0.0.1",
        "service": {"id": fleet.service, "host": "host-a", "disabled_reason": "rain"},
        "cpu_info": {"arch": "x86_64"},
        "vcpus": 16,
        "memory_mb": 8192,
        "local_gb": 100,
        "vcpus_used": 4,
        "memory_mb_used": 1024,
        "local_gb_used": 30,
        "free_ram_mb": 7168,
        "free_disk_gb": 70,
        "disk_available_least": 70,
        "current_workload": 1,
        "running_vms": 2,
    }
    assert fleet.admin.at("2.87").get("/os-hypervisors/detail").json["hypervisors"][0] == shown


def test_cpu_info_is_text_before_2_28(fleet: Fleet) -> None:
    number = fleet.admin.at("2.27").get("/os-hypervisors").json["hypervisors"][0]["id"]
    shown = fleet.admin.at("2.27").get(f"/os-hypervisors/{number}").json["hypervisor"]
    assert shown["cpu_info"] == '{"arch":"x86_64"}'
    assert isinstance(shown["service"]["id"], int)


def test_details_from_2_88_on(fleet: Fleet) -> None:
    shown = fleet.admin.at("2.88").get("/os-hypervisors/detail").json["hypervisors"]
    assert [one["uptime"] for one in shown] == [None, "3 days", None]
    assert not {"vcpus", "cpu_info", "running_vms"} & set(shown[0])


def test_uptime_and_statistics_end_with_2_87(fleet: Fleet) -> None:
    old = fleet.admin.at("2.87")
    assert old.get(f"/os-hypervisors/{fleet.second}/uptime").json["hypervisor"]["uptime"] == "3 days"
    assert old.get(f"/os-hypervisors/{fleet.third}/uptime").fault[0] == "notImplemented"
    assert fleet.admin.get(f"/os-hypervisors/{fleet.second}/uptime").status == 404
    sums = old.get("/os-hypervisors/statistics").json["hypervisor_statistics"]
    assert (sums["count"], sums["vcpus"], sums["memory_mb"], sums["running_vms"]) == (2, 32, 16384, 0)
    assert fleet.admin.at("2.88").get("/os-hypervisors/statistics").status == 404


def test_search_and_servers_before_2_53(fleet: Fleet) -> None:
    old = fleet.admin.at("2.52")
    assert names(old.get("/os-hypervisors/node-b/search")) == ["node-b1", "node-b2"]
    assert old.get("/os-hypervisors/x_y/search").fault[1] == "No hypervisor matching 'x_y' could be found."
    first, *_ = old.get("/os-hypervisors/node-a/servers").json["hypervisors"]
    assert [server["uuid"] for server in first["servers"]] == fleet.servers
    assert "servers" not in old.get("/os-hypervisors/node-b/servers").json["hypervisors"][0]
    for path in ("search", "servers"):
        assert fleet.admin.at("2.53").get(f"/os-hypervisors/node-b/{path}").status == 404


def test_search_and_servers_by_query_from_2_53_on(fleet: Fleet) -> None:
    admin = fleet.admin
    assert names(admin.get("/os-hypervisors?hypervisor_hostname_pattern=a1")) == ["node-a1"]
    assert admin.get("/os-hypervisors?hypervisor_hostname_pattern=zzz").status == 404
    assert admin.get("/os-hypervisors?hypervisor_hostname_pattern=a1&limit=1").status == 400
    with_servers = admin.get("/os-hypervisors?with_servers=true").json["hypervisors"]
    assert [[server["name"] for server in one["servers"]] for one in with_servers] == [["one", "two"], [], []]
    before = admin.at("2.74").get("/os-hypervisors?with_servers=1").json["hypervisors"]
    assert ["servers" in one for one in before] == [True, False, False]
    assert admin.get("/os-hypervisors?with_servers=perhaps").status == 400
    assert admin.get(f"/os-hypervisors/{fleet.first}?with_servers=yes").json["hypervisor"]["servers"]


def test_pages_from_2_33_on(fleet: Fleet) -> None:
    admin = fleet.admin
    assert len(names(admin.at("2.32").get("/os-hypervisors?limit=1"))) == 3
    first = admin.get("/os-hypervisors?limit=2")
    assert names(first) == ["node-a1", "node-b1"]
    assert f"marker={fleet.second}" in first.json["hypervisors_links"][0]["href"]
    assert names(admin.get(f"/os-hypervisors?limit=2&marker={fleet.second}")) == ["node-b2"]
    assert names(admin.get("/os-hypervisors?limit=0")) == []
    assert admin.get("/os-hypervisors?marker=no-such").status == 400
    old = admin.at("2.33").get("/os-hypervisors?limit=1").json
    number = old["hypervisors"][0]["id"]
    assert names(admin.at("2.33").get(f"/os-hypervisors?marker={number}")) == ["node-b1", "node-b2"]
    assert admin.at("2.33").get("/os-hypervisors?marker=x").status == 400
    assert (
        "os-hypervisors/detail?"
        in admin.get("/os-hypervisors/detail?limit=1").json["hypervisors_links"][0]["href"]
    )


def test_wrong_ids(fleet: Fleet) -> None:
    assert fleet.admin.get("/os-hypervisors/1").fault[0] == "badRequest"
    assert fleet.admin.get(f"/os-hypervisors/{uuids.generate()}").status == 404
    assert fleet.admin.at("2.52").get("/os-hypervisors/99999").status == 404
    assert fleet.admin.at("2.52").get(f"/os-hypervisors/{fleet.first}").status == 404


def test_only_administrators(fleet: Fleet) -> None:
    member = fleet.cloud.member()
    for path in ("", "/detail", f"/{fleet.first}"):
        assert member.get(f"/os-hypervisors{path}").status == 403
    assert member.at("2.1").get("/os-hypervisors/statistics").status == 403
