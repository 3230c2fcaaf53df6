"""A machine whose power changed behind our back: told by another service, or seen by its agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.drivers.contract import RUNNING, SHUT_DOWN
from moorage.drivers.fake import plugin
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.drivers.image_store import ImageStore
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

Make = Callable[..., Yard]
QUIET = {"agent.heartbeat_interval": 3600}


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> list[FakeDriver]:
    """The drivers of the hosts: who starts and stops a server there presses the button on the machine."""
    made: list[FakeDriver] = []

    class Reachable(FakeDriver):
        def __init__(self, host: str, settings: FakeSettings, directory: Path, images: ImageStore) -> None:
            super().__init__(host, settings, directory, images)
            made.append(self)

    monkeypatch.setattr(plugin, "FakeDriver", Reachable)
    return made


def tell(cloud: Yard, uuid: str, tag: str) -> None:
    event = {"name": "power-update", "server_uuid": uuid, "tag": tag}
    reply = cloud.api.simulate_post("/v2.1/os-server-external-events", json={"events": [event]})
    assert reply.status_code == 200, reply.text
    assert reply.json["events"] == [{**event, "status": "completed", "code": 200}]
    cloud.await_rest()


def actions(cloud: Yard, uuid: str) -> list[Any]:
    return [
        one["action"] for one in cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    ]


def test_a_server_follows_what_the_machine_is_found_to_be(yard: Make, machines: list[FakeDriver]) -> None:
    cloud = yard(hosts=1, **QUIET)
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    machines[0].stop(uuid, "")
    tell(cloud, uuid, "POWER_OFF")
    server = cloud.server(uuid)
    assert (server["status"], server["OS-EXT-STS:power_state"]) == ("SHUTOFF", SHUT_DOWN)
    machines[0].start(uuid, "")
    tell(cloud, uuid, "POWER_ON")
    server = cloud.server(uuid)
    assert (server["status"], server["OS-EXT-STS:power_state"]) == ("ACTIVE", RUNNING)
    assert actions(cloud, uuid) == ["start", "stop", "create"]


def test_an_event_that_is_not_true_changes_nothing(yard: Make) -> None:
    cloud = yard(hosts=1, **QUIET)
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    tell(cloud, uuid, "POWER_OFF")  # the machine runs
    tell(cloud, uuid, "POWER_ON")  # we know that
    tell(cloud, uuid, "POWER_SIDEWAYS")
    server = cloud.server(uuid)
    assert (server["status"], server["OS-EXT-STS:task_state"]) == ("ACTIVE", None)
    assert actions(cloud, uuid) == ["start", "stop", "create"]


def test_a_host_that_is_down_is_not_waited_for(yard: Make) -> None:
    cloud = yard(hosts=1, **QUIET)
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    (service,) = cloud.get("/v2.1/os-services?binary=nova-compute")["services"]
    path = f"/v2.1/os-services/{service['id']}"
    assert cloud.api.simulate_put(path, json={"forced_down": True}).status_code == 200
    tell(cloud, uuid, "POWER_OFF")
    assert cloud.server(uuid)["OS-EXT-STS:task_state"] is None
    (newest, *_) = cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert (newest["action"], newest["message"]) == ("stop", "Error")


def test_an_agent_sees_it_by_itself(yard: Make, machines: list[FakeDriver]) -> None:
    cloud = yard(hosts=1)
    (uuid,) = cloud.boot()
    cloud.await_status([uuid], "ACTIVE")
    machines[0].stop(uuid, "")
    wait_until(lambda: cloud.server(uuid)["status"] == "SHUTOFF", "what the agent sees", 10)
    assert cloud.server(uuid)["OS-EXT-STS:power_state"] == SHUT_DOWN
