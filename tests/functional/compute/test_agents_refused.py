"""What an agent logs in with opens nothing of the Compute API, whatever else somebody gave it."""

from __future__ import annotations

import logging
import re
from dataclasses import replace

import pytest

from moorage.compute_api.routes import ROUTES
from moorage.http.caller import AGENT_ROLE
from tests.support.compute import Cloud

SOME_ID = "3f0c1d4e-0000-4000-8000-000000000001"


@pytest.mark.parametrize("roles", [AGENT_ROLE, f"{AGENT_ROLE.upper()},admin,service,member"])
def test_every_call_is_refused(cloud: Cloud, roles: str, caplog: pytest.LogCaptureFixture) -> None:
    headers = {"X-Auth-Token": "host-1:service", "X-Roles": roles}
    asked = [(method, route.path) for route in ROUTES for method in route.methods]
    assert len(asked) > 150
    let_in = [
        (method, path)
        for method, path in asked
        if cloud.client.simulate_request(
            method, "/v2.1" + re.sub(r"{[^}]*}", SOME_ID, path), headers=headers, json={}
        ).status_code
        != 403
    ]
    assert let_in == []
    assert sum("which is an agent" in line.getMessage() for line in caplog.records) == len(asked)
    assert {line.levelno for line in caplog.records} == {logging.WARNING}


def test_a_service_that_is_no_agent_is_let_in(cloud: Cloud) -> None:
    events = {"events": [{"name": "network-changed", "server_uuid": SOME_ID}]}
    for roles, status in (("service", 207), (AGENT_ROLE, 403)):
        headers = {"X-Auth-Token": "neutron:service", "X-Roles": roles}
        answer = cloud.client.simulate_post("/v2.1/os-server-external-events", headers=headers, json=events)
        assert answer.status_code == status, answer.text


def test_images_are_fetched_and_filled_but_not_deleted(cloud: Cloud) -> None:
    owner = replace(cloud.member(), root="/image")
    made = owner.call("POST", "/v2/images", {"name": "x", "disk_format": "raw", "container_format": "bare"})
    agent = {"X-Auth-Token": "host-1:service", "X-Roles": AGENT_ROLE}
    path = f"/image/v2/images/{made.json['id']}"
    data = {**agent, "Content-Type": "application/octet-stream"}
    assert cloud.client.simulate_put(f"{path}/file", headers=data, body=b"disk").status_code == 204
    assert cloud.client.simulate_get(f"{path}/file", headers=agent).content == b"disk"
    assert cloud.client.simulate_delete(path, headers=agent).status_code == 403
