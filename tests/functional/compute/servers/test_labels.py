"""Metadata and tags of servers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.compute.servers.conftest import Cloud


@pytest.fixture
def running(cloud: Cloud) -> str:
    uuid = cloud.alice.booted(metadata={"a": "1"}, tags=["x"])
    cloud.run(uuid)
    return uuid


def change(cloud: Cloud, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = cloud.alice.call(method, path, body)
    assert answer.status_code == status, answer.text
    return answer


def test_metadata(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/metadata"
    assert cloud.rita.get(path) == {"metadata": {"a": "1"}}
    added = change(cloud, "POST", path, {"metadata": {"b": "2"}}).json
    assert added == {"metadata": {"a": "1", "b": "2"}}
    assert change(cloud, "PUT", path, {"metadata": {"c": "3"}}).json == {"metadata": {"c": "3"}}
    assert change(cloud, "PUT", f"{path}/c", {"meta": {"c": "4"}}).json == {"meta": {"c": "4"}}
    assert cloud.alice.get(f"{path}/c") == {"meta": {"c": "4"}}
    change(cloud, "DELETE", f"{path}/c", status=204)
    assert cloud.alice.get(f"/servers/{running}")["server"]["metadata"] == {}
    assert cloud.alice.refused(404, "GET", f"{path}/c") == "Metadata item was not found"
    assert cloud.alice.refused(404, "DELETE", f"{path}/c") == "Metadata item was not found"


def test_bad_metadata_changes_nothing(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/metadata"
    cloud.alice.refused(400, "POST", path, {"metadata": {"a/b": "2"}})
    cloud.alice.refused(400, "POST", path, {"metadata": {"b": 2}})
    cloud.alice.refused(400, "PUT", f"{path}/a", {"meta": {"a": "1", "b": "2"}})
    mismatch = cloud.alice.refused(400, "PUT", f"{path}/a", {"meta": {"b": "2"}})
    assert mismatch == "Request body and URI mismatch"
    cloud.rita.refused(403, "PUT", path, {"metadata": {}})
    cloud.limit("red", metadata_items=1)
    refusal = cloud.alice.refused(403, "POST", path, {"metadata": {"b": "2"}})
    assert refusal == "Maximum number of metadata items exceeds 1"
    cloud.run(running, vm_state="error")
    refusal = cloud.alice.refused(409, "POST", path, {"metadata": {"a": "2"}})
    assert refusal == f"Cannot 'update metadata' instance {running} while it is in vm_state error"
    assert cloud.server(running).metadata == {"a": "1"}


def test_tags(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/tags"
    assert cloud.rita.get(path) == {"tags": ["x"]}
    assert cloud.alice.call("GET", f"{path}/x").status_code == 204
    added = change(cloud, "PUT", f"{path}/a", status=201)
    assert added.headers["location"].endswith(f"/v2.1{path}/a")
    change(cloud, "PUT", f"{path}/a", status=204)
    assert cloud.alice.get(path) == {"tags": ["a", "x"]}
    change(cloud, "DELETE", f"{path}/a", status=204)
    replaced = change(cloud, "PUT", path, {"tags": ["z", "y", "z"]}).json
    assert replaced == {"tags": ["y", "z"]}
    change(cloud, "DELETE", path, status=204)
    assert cloud.alice.get(path) == {"tags": []}


def test_bad_tags_change_nothing(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/tags"
    assert "has no tag 'a'" in cloud.alice.refused(404, "GET", f"{path}/a")
    assert "has no tag 'a'" in cloud.alice.refused(404, "DELETE", f"{path}/a")
    assert "Tag 'a,b' is invalid" in cloud.alice.refused(400, "PUT", f"{path}/a,b")
    cloud.alice.refused(400, "PUT", f"{path}/{'t' * 61}")
    cloud.alice.refused(400, "PUT", path, {"tags": ["a/b"]})
    cloud.alice.refused(400, "PUT", path, {"tags": [str(number) for number in range(51)]})
    cloud.alice.refused(404, "GET", path, version="2.25")
    cloud.rita.refused(403, "DELETE", path)
    many = [f"{number:02}" for number in range(50)]
    change(cloud, "PUT", path, {"tags": many})
    refusal = cloud.alice.refused(400, "PUT", f"{path}/more")
    assert refusal == "The number of tags exceeded the per-server limit 50"
    cloud.run(running, vm_state="building")
    cloud.alice.refused(409, "DELETE", path)
    assert cloud.server(running).tags == many
