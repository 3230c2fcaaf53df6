"""Values that a database can't store or a library chokes on: refused on both databases, and quickly."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from falcon.testing import Result, simulate_request

from moorage.http.auth import Wsgi

NODE = "10000000-0000-4000-8000-000000000001"
CONSUMER = "c0000000-0000-4000-8000-000000000001"
CLAIM = {
    "allocations": {NODE: {"resources": {"VCPU": 1}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}


def ask(application: Wsgi, method: str, path: str, body: Any = None, query: str = "") -> Result:
    headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
    if body is not None:
        headers["Content-Type"] = "application/json"
        body = body if isinstance(body, bytes) else json.dumps(body)
    return simulate_request(application, method, path, headers=headers, body=body, query_string=query)


@pytest.mark.parametrize(
    ("method", "path", "query"),
    [
        ("GET", "/resource_providers/%00", ""),
        ("GET", "/traits/CUSTOM_%00", ""),
        ("GET", "/traits", "name=in:%00"),
        ("GET", "/traits", "name=startswith:%00"),
        ("GET", "/resource_classes/CUSTOM_%00", ""),
        ("GET", "/resource_providers", "name=%00"),
        ("GET", "/allocations/%00", ""),
        ("DELETE", "/allocations/%00", ""),
        ("GET", "/usages", "project_id=a%00"),
        ("GET", "/usages", "project_id=a&user_id=%00"),
    ],
)
def test_a_nul_in_the_address_names_nothing(application: Wsgi, method: str, path: str, query: str) -> None:
    assert ask(application, method, path, query=query).status_code == (400 if query else 404)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/resource_providers", {"name": "a\0b"}),
        ("PUT", f"/allocations/{CONSUMER}", {**CLAIM, "project_id": "\0"}),
        ("PUT", f"/allocations/{CONSUMER}", {**CLAIM, "user_id": "\0"}),
        ("POST", "/moorage/v1/providers", {"providers": [{"uuid": NODE, "name": "a\0b"}]}),
    ],
)
def test_a_nul_in_the_body_is_refused(application: Wsgi, method: str, path: str, body: Any) -> None:
    answer = ask(application, method, path, body)
    assert answer.status_code == 400
    assert "NUL" in answer.json["errors"][0]["detail"]


def test_what_only_looks_like_a_nul_is_a_name_like_others(application: Wsgi) -> None:
    assert ask(application, "POST", "/resource_providers", {"name": "a\\u0000b"}).status_code == 200


@pytest.mark.parametrize("spelling", [f"urn:uuid:{CONSUMER}", f"{{{CONSUMER}}}"])
def test_an_aggregate_is_spelled_so_that_it_can_be_stored(application: Wsgi, spelling: str) -> None:
    made = ask(application, "POST", "/resource_providers", {"name": f"with {spelling}"}).json
    body = {"aggregates": [spelling], "resource_provider_generation": 0}
    answer = ask(application, "PUT", f"/resource_providers/{made['uuid']}/aggregates", body)
    assert answer.status_code == 400


@pytest.mark.parametrize("field", ["uuid", "parent_provider_uuid", "aggregates"])
def test_a_report_spells_uuids_in_the_one_way_that_is_stored(application: Wsgi, field: str) -> None:
    """Else the same provider could be reported twice, and be found by nobody."""
    value = "ABCDEF00-0000-4000-8000-00000000000A"
    provider = {"uuid": NODE, "name": "reported", field: [value] if field == "aggregates" else value}
    answer = ask(application, "POST", "/moorage/v1/providers", {"providers": [provider]})
    assert answer.status_code == 400
    assert value in answer.json["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/allocation_candidates", "resources=VCPU:1&limit=" + "9" * 5000),
        ("/moorage/v1/why", "resources=VCPU:1&misses=" + "9" * 5000),
        ("/moorage/v1/why", "resources=VCPU:1&misses=%C2%B2"),
        ("/moorage/v1/capacity", "resources=VCPU:" + "9" * 5000),
    ],
)
def test_a_number_that_is_none_is_refused(application: Wsgi, path: str, query: str) -> None:
    assert ask(application, "GET", path, query=query).status_code == 400


@pytest.mark.parametrize("depth", [100, 400, 900, 5000, 100_000])
@pytest.mark.parametrize("path", ["/resource_providers", "/allocations", "/moorage/v1/providers"])
def test_deep_nesting_is_refused(application: Wsgi, path: str, depth: int) -> None:
    assert ask(application, "POST", path, b"[" * depth + b"]" * depth).status_code == 400


def test_a_refused_parent_is_told_before_a_taken_name(application: Wsgi) -> None:
    """As the reference does: 400 rather than 409."""
    ask(application, "POST", "/resource_providers", {"name": "taken"})
    made = ask(application, "POST", "/resource_providers", {"name": "to be moved"}).json
    body = {"name": "taken", "parent_provider_uuid": made["uuid"]}
    assert ask(application, "PUT", f"/resource_providers/{made['uuid']}", body).status_code == 400


@pytest.mark.parametrize(
    "body",
    [
        {"allocations": [1] * 300_000},
        {**CLAIM, "allocations": {f"{number:036}": {"resources": {}} for number in range(20_000)}},
        {**CLAIM, "project_id": "x" * 5_000_000},
    ],
)
def test_a_large_mistake_is_refused_as_quickly_as_a_small_one(application: Wsgi, body: Any) -> None:
    encoded = json.dumps(body).encode()
    begun = time.process_time()
    answer = ask(application, "PUT", f"/allocations/{CONSUMER}", encoded)
    assert answer.status_code == 400
    assert time.process_time() - begun < 1.0
    assert len(answer.content) < 10_000
