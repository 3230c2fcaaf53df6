"""The role of agents: what they tell of their hosts, and nothing that claims, frees or looks for room."""

from __future__ import annotations

import re

import falcon.testing
import pytest

from moorage.core import uuids
from moorage.http.auth import Wsgi
from moorage.http.caller import AGENT_ROLE
from moorage.placement.api.routes import API, RULE

FORBIDDEN = (
    "allocations:manage",
    "allocations:update",
    "allocations:delete",
    "allocation_candidates:list",
    "resource_classes:create",
    "resource_classes:delete",
    "traits:delete",
    "usages",
    "moorage:counters:update",
    "moorage:capacity",
)
HEADERS = {"X-Auth-Token": "host-1:service", "OpenStack-API-Version": "placement 1.39"}


@pytest.fixture
def client(application: Wsgi) -> falcon.testing.TestClient:
    return falcon.testing.TestClient(application)


def status(client: falcon.testing.TestClient, roles: str, method: str, path: str) -> int:
    asked = re.sub(r"{[^}]*}", uuids.generate(), path)
    answer = client.simulate_request(method, asked, headers={**HEADERS, "X-Roles": roles}, json={})
    return answer.status_code


def test_what_agents_need_is_open_to_them_and_nothing_else(client: falcon.testing.TestClient) -> None:
    refused = set()
    for route in API:
        for method, endpoint in route.methods.items():
            if endpoint.policy is not None:
                found = status(client, AGENT_ROLE, method, route.path) == 403
                assert found == (endpoint.check == "rule:admin_or_service_api" or "reader" in endpoint.check)
                assert status(client, "nobody", method, route.path) == 403
                if found:
                    refused.add(endpoint.policy.removeprefix(RULE))
    assert set(FORBIDDEN) <= refused


def test_a_host_is_told_of(client: falcon.testing.TestClient) -> None:
    uuid, headers = uuids.generate(), {**HEADERS, "X-Roles": AGENT_ROLE}
    made = client.simulate_post(
        "/resource_providers", headers=headers, json={"name": f"host-{uuid}", "uuid": uuid}
    )
    assert made.status_code == 200, made.text
    claim = {"allocations": {uuid: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u"}
    body = {**claim, "consumer_generation": None, "consumer_type": "INSTANCE"}
    taken = client.simulate_put(f"/allocations/{uuids.generate()}", headers=headers, json=body)
    assert taken.status_code == 403
