"""Over HTTP: a provider that comes right after another has gone is itself, in every answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from moorage.core import uuids
from tests.support.stage import Stage


class Api:
    """Placement as a client sees it; `restart` gives it another process on the same database."""

    def __init__(self, stage: Stage, database_url: str) -> None:
        self._stage = stage
        self._url = database_url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.headers.update({"x-auth-token": "admin", "openstack-api-version": "placement 1.39"})
        self.restart()

    def restart(self) -> None:
        self._port = self._stage.put_up(self._url)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        reply = self._session.request(method, f"http://127.0.0.1:{self._port}{path}", json=body)
        assert reply.ok, f"{reply.status_code}: {reply.text}"
        return reply.json() if reply.content else None

    def create(self, name: str, vcpus: int) -> str:
        uuid = uuids.generate()
        made = self.call("POST", "/resource_providers", {"uuid": uuid, "name": name})
        stock = {
            "resource_provider_generation": made["generation"],
            "inventories": {"VCPU": {"total": vcpus}},
        }
        self.call("PUT", f"/resource_providers/{uuid}/inventories", stock)
        return uuid

    def report(self, name: str, vcpus: int) -> str:
        """As agents do."""
        uuid = uuids.generate()
        one = {"uuid": uuid, "name": name, "inventories": {"VCPU": {"total": vcpus}}}
        self.call("POST", "/moorage/v1/providers", {"providers": [one]})
        return uuid

    def delete(self, uuid: str) -> None:
        self.call("DELETE", f"/resource_providers/{uuid}")

    def listed(self) -> dict[str, str]:
        found = self.call("GET", "/resource_providers")["resource_providers"]
        return {provider["uuid"]: provider["name"] for provider in found}

    def search(self) -> Any:
        return self.call("GET", "/allocation_candidates?resources=VCPU:1")

    def claim(self, request: Any) -> str:
        consumer = uuids.generate()
        owner = {"project_id": "p", "user_id": "u", "consumer_type": "SERVER", "consumer_generation": None}
        self.call("PUT", f"/allocations/{consumer}", {**request, **owner})
        return consumer


@pytest.fixture
def api(moorage: Stage, database_url: str) -> Iterator[Api]:
    yield Api(moorage, database_url)
    moorage.take_down()


@pytest.mark.parametrize("restarting", [False, True])
@pytest.mark.parametrize("make", [Api.create, Api.report])
def test_a_successor_is_found_by_its_own_uuid_and_can_be_claimed(
    api: Api, make: Any, restarting: bool
) -> None:
    predecessor = make(api, "first", 4)
    assert api.listed() == {predecessor: "first"}
    assert list(api.search()["provider_summaries"]) == [predecessor]
    api.delete(predecessor)
    if restarting:
        api.restart()
    successor = make(api, "second", 8)
    assert api.listed() == {successor: "second"}
    found = api.search()
    assert found["provider_summaries"] == {
        successor: {
            "resources": {"VCPU": {"capacity": 8, "used": 0}},
            "traits": [],
            "parent_provider_uuid": None,
            "root_provider_uuid": successor,
        }
    }
    (request,) = found["allocation_requests"]
    assert list(request["allocations"]) == [successor]
    consumer = api.claim(request)
    held = api.call("GET", f"/allocations/{consumer}")["allocations"]
    assert {uuid: one["resources"] for uuid, one in held.items()} == {successor: {"VCPU": 1}}
    assert api.search()["provider_summaries"][successor]["resources"]["VCPU"]["used"] == 1
