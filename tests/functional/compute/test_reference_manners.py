"""How the reference's Compute API takes what is odd: paths, methods, types, repeated parameters."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.compute_api import absent
from tests.support.compute import Cloud, User


@pytest.mark.parametrize(
    ("method", "path"), [("DELETE", "/flavors"), ("PATCH", "/flavors/1"), ("HEAD", "/x")]
)
def test_a_method_that_a_path_does_not_have_is_not_found(admin: User, method: str, path: str) -> None:
    assert admin.call(method, path).status == 404


@pytest.mark.parametrize("header", ["OpenStack-API-Version", "X-OpenStack-Nova-API-Version"])
def test_a_version_that_is_not_there_is_named_in_the_answer(admin: User, header: str) -> None:
    asked = "compute 2.999" if header.startswith("Open") else "2.999"
    answer = admin.at(None).call("GET", "/extensions", headers={header: asked})
    assert answer.status == 406
    assert answer.headers["openstack-api-version"] == "compute 2.999"
    assert answer.headers["x-openstack-nova-api-version"] == "2.999"
    nonsense = admin.at(None).call("GET", "/extensions", headers={"OpenStack-API-Version": "compute junk"})
    assert nonsense.status == 400
    assert "openstack-api-version" not in nonsense.headers


def test_a_body_is_read_as_json_whatever_its_type_is_said_to_be(cloud: Cloud) -> None:
    path, sent = "/v2.1/os-aggregates", {"X-Auth-Token": "root:p", "X-Roles": "admin"}
    for number, kind in enumerate(("text/plain", "application/octet-stream")):
        body = f'{{"aggregate": {{"name": "typed-{number}"}}}}'
        answer = cloud.client.simulate_post(path, body=body, headers={**sent, "Content-Type": kind})
        assert answer.status_code == 200, answer.text
    answer = cloud.client.simulate_post(path, body="<xml/>", headers={**sent, "Content-Type": "text/xml"})
    assert answer.status_code == 400
    assert "badRequest" in answer.json


@pytest.mark.parametrize(
    ("version", "query", "status"),
    [
        ("2.1", "/flavors?limit=x&limit=1", 400),
        ("2.1", "/flavors?limit=2&limit=1", 200),
        ("2.1", "/flavors?sort_key=colour&sort_key=name", 400),
        ("2.1", "/servers?limit=x&limit=1", 400),
        ("2.1", "/servers?changes-since=x&changes-since=2026-01-01T00:00:00Z", 400),
        ("2.1", "/os-services?host=a&host=b", 200),
        ("2.33", "/os-hypervisors?limit=x&limit=1", 400),
        ("2.52", "/os-hypervisors?limit=1&limit=1", 200),
        ("2.53", "/os-hypervisors?limit=1&limit=1", 400),
        ("2.32", "/os-hypervisors?limit=1&limit=1", 200),
        ("2.53", "/os-hypervisors?with_servers=true&with_servers=true", 400),
        ("2.59", "/os-migrations?limit=1&limit=1", 400),
        ("2.59", "/os-migrations?status=a&status=b", 200),
        ("2.80", "/os-migrations?user_id=a&user_id=b", 400),
    ],
)
def test_each_of_repeated_parameters_is_checked(admin: User, version: str, query: str, status: int) -> None:
    assert admin.at(version).get(query).status == status


def test_of_repeated_parameters_the_last_one_counts(cloud: Cloud, admin: User) -> None:
    for name in ("first", "second"):
        flavor = {"name": name, "id": name, "ram": 1, "vcpus": 1, "disk": 0}
        assert admin.post("/flavors", {"flavor": flavor}).status == 200
    assert len(admin.get("/flavors?limit=1&limit=2").json["flavors"]) == 2


@pytest.mark.parametrize("path", absent.GONE)
def test_what_the_reference_has_removed_is_gone(admin: User, path: str) -> None:
    for method in absent.GONE[path]:
        body: Any = {} if method in ("POST", "PUT") else None
        assert admin.call(method, path.format_map(_Any()), body).status == 410


@pytest.mark.parametrize("path", absent.ELSEWHERE)
def test_what_is_another_service_s_is_not_here(admin: User, path: str) -> None:
    for method in absent.ELSEWHERE[path]:
        body: Any = {} if method in ("POST", "PUT") else None
        answer = admin.at("2.1").call(method, path.format_map(_Any()), body)
        assert answer.fault[0] == "itemNotFound"


class _Any(dict[str, str]):
    def __missing__(self, _name: str) -> str:
        return "x"
