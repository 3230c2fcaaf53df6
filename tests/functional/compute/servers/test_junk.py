"""Whatever is sent: a refusal that says what is wrong, never a fault of ours, and nothing changed."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

import pytest

from tests.functional.compute.servers.conftest import IMAGE, Cloud

NASTY = [
    "\x00",
    "a\x00b",
    "'",
    '"',
    "%",
    "\\",
    "🙂",
    "x" * 5000,
    "../..",
    " ",
    "{",
    "[",
    "(?i",
    "*",
]
FILTERS = [
    *("name", "status", "ip", "ip6", "flavor", "image", "tags", "not-tags-any", "locked", "limit", "marker"),
    *("sort_key", "sort_dir", "changes-since", "changes-before", "all_tenants", "uuid", "host", "vm_state"),
    *("power_state", "created_at", "launch_index", "project_id", "deleted", "config_drive", "task_state"),
]
MOMENTS = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-02-30", "12"]


@pytest.mark.parametrize("name", FILTERS)
def test_filters(cloud: Cloud, name: str) -> None:
    cloud.alice.booted()
    for value in (*NASTY, *MOMENTS):
        for path in ("/servers", "/servers/detail"):
            answer = cloud.admin.call("GET", f"{path}?{name}={quote(value)}")
            assert answer.status_code in (200, 400, 403), (value, answer.text)


def test_paths(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    cloud.run(uuid)
    before = cloud.server(uuid)
    for value in NASTY:
        there = quote(value, safe="")
        for method, path in (
            ("GET", f"/servers/{there}"),
            ("DELETE", f"/servers/{there}"),
            ("GET", f"/servers/{uuid}/metadata/{there}"),
            ("DELETE", f"/servers/{uuid}/tags/{there}"),
            ("GET", f"/servers/{uuid}/os-instance-actions/{there}"),
            ("GET", f"/servers/{uuid}/os-instance-actions?marker={there}"),
            ("GET", f"/servers/{uuid}/os-instance-actions?changes-since={there}"),
            ("GET", f"/servers/{uuid}/ips/{there}"),
        ):
            answer = cloud.alice.call(method, path)
            assert 400 <= answer.status_code < 500, (method, path, answer.text)
    assert cloud.server(uuid) == before


@pytest.mark.parametrize(
    "field",
    [
        *("name", "description", "hostname", "key_name", "availability_zone", "flavorRef", "imageRef"),
        *("accessIPv4", "accessIPv6", "user_data", "networks", "min_count", "host", "config_drive"),
    ],
)
def test_bodies(cloud: Cloud, field: str) -> None:
    values: list[Any] = [*NASTY, None, 0, -1, 2**70, 1.5, True, [], {}, [None], {"a": 1}]
    for value in values:
        answer = cloud.alice.boot(**{field: value})
        assert answer.status_code in (202, 400, 403), (value, answer.text)


def test_the_longest_of_everything_fits(cloud: Cloud) -> None:
    mapped = "0000:0000:0000:0000:0000:ffff:192.168.100.228"
    answer = cloud.alice.boot(
        name="n" * 255,
        description="d" * 255,
        accessIPv6=mapped,
        metadata={"k" * 255: "v" * 255},
        tags=["t" * 60],
        max_count=2,
    )
    assert answer.status_code == 202, answer.text
    server = cloud.server(answer.json["server"]["id"])
    assert server.name == "n" * 253 + "-1"
    assert ip_address(server.access_ip_v6) == ip_address(mapped)
    assert len(cloud.alice.get("/servers/detail?tags=" + "t" * 60)["servers"]) == 2


@pytest.mark.parametrize("reason", NASTY)
def test_reasons(cloud: Cloud, reason: str) -> None:
    uuid = cloud.alice.booted()
    answer = cloud.alice.call("POST", f"/servers/{uuid}/action", {"lock": {"locked_reason": reason}})
    assert answer.status_code in (202, 400), answer.text


def test_bodies_that_are_no_objects(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    nested: list[Any] = [{"server": None}, {"server": []}, {"server": {"imageRef": IMAGE}}]
    for method, path in (
        ("POST", "/servers"),
        ("PUT", f"/servers/{uuid}"),
        ("POST", f"/servers/{uuid}/action"),
        ("POST", f"/servers/{uuid}/metadata"),
        ("PUT", f"/servers/{uuid}/tags"),
    ):
        for body in (None, [], "text", 7, *nested):
            answer = cloud.alice.call(method, path, body)
            assert answer.status_code in (400, 415), (method, path, body, answer.text)
