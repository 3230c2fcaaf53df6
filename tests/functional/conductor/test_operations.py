"""The ledger over HTTP: what is under way and what it waits for; tried again, cancelled, refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.tables.compute import operations
from tests.functional.conductor.conftest import Yard
from tests.support.processes import wait_until

PATH = "/v2.1/moorage-operations"
ROOM: dict[str, Any] = {"fake.vcpus": 8}


@pytest.fixture(scope="module")
def cloud(module_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    made = Yard(module_database_url, tmp_path_factory.mktemp("operations"), 2, **ROOM)
    yield made
    made.stop()


def listed(cloud: Yard, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cloud.get(f"{PATH}?{query}")["operations"]
    return found


def slow(cloud: Yard, seconds: int = 60) -> tuple[str, dict[str, Any]]:
    """A server whose host takes long to make it, and its build."""
    (uuid,) = cloud.boot(metadata={"fake:spawn": f"delay={seconds}"})

    def there() -> bool:
        return [one["step"] for one in listed(cloud, f"server_id={uuid}")] == ["spawned"]

    wait_until(there, "the build to wait for its host", 30)
    (operation,) = listed(cloud, f"server_id={uuid}")
    return uuid, operation


def act(cloud: Yard, operation_id: int, body: dict[str, Any]) -> Any:
    return cloud.api.simulate_post(f"{PATH}/{operation_id}/action", json=body)


def write(cloud: Yard, operation_id: int, **columns: Any) -> None:
    change = sa.update(operations).where(operations.c.id == operation_id).values(**columns)
    cloud.placement.database.transact(lambda connection: connection.execute(change))


def test_a_build_that_waits_for_its_host_says_so_and_is_cancelled(cloud: Yard) -> None:
    uuid, found = slow(cloud)
    host = found["host"]
    assert (found["state"], found["stuck"], found["sentence"]) == (
        "waiting",
        None,
        f"waits for the agent of {host} to answer",
    )
    (action,) = cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert found["request_id"] == action["request_id"]
    shown = cloud.get(f"{PATH}/{found['id']}")["operation"]
    assert shown["holds"]["host"] == host
    assert list(shown["holds"]["allocations"]) == [uuid]
    assert (shown["steps"][0], shown["cancel_refusal"]) == ("begin", None)
    assert act(cloud, found["id"], {"cancel": {"reason": "enough"}}).status_code == 202
    (server,) = cloud.await_status([uuid], "ERROR")
    assert server["fault"]["message"] == "An administrator cancelled it: enough"
    assert (cloud.holders(), cloud.addressed()) == (set(), set())
    again = act(cloud, found["id"], {"cancel": None})
    assert (again.status_code, again.json["conflictingRequest"]["message"]) == (
        409,
        f"Operation {found['id']} has ended: failed.",
    )
    assert listed(cloud, f"server_id={uuid}&state=ended")[0]["outcome"] == "failed"
    cloud.delete(uuid)
    cloud.await_gone([uuid])


def test_what_is_stuck_comes_first_and_can_be_tried_again(cloud: Yard) -> None:
    (first, older), (second, newer) = slow(cloud), slow(cloud)
    write(cloud, newer["id"], tries=5, trouble="the host is on fire")
    assert [one["id"] for one in listed(cloud)] == [newer["id"], older["id"]]
    assert [one["id"] for one in listed(cloud, "stuck=true")] == [newer["id"]]
    assert [one["id"] for one in listed(cloud, "stuck=false&kind=build&step=spawned")] == [older["id"]]
    assert listed(cloud, "older_than=3600") == listed(cloud, "host=nowhere") == listed(cloud, "kind=x") == []
    assert cloud.get(f"{PATH}?limit=1")["complete"] is False
    (stuck,) = listed(cloud, "stuck=true")
    assert stuck["sentence"].endswith("5 tries in a row came to nothing: the host is on fire")
    assert act(cloud, newer["id"], {"retry": None}).status_code == 202
    wait_until(lambda: listed(cloud, f"server_id={second}")[0]["tries"] == 1, "the host to be asked again")
    for uuid in (first, second):
        cloud.delete(uuid)
    cloud.await_gone([first, second])


def test_what_no_conductor_of_this_release_knows_is_told(cloud: Yard) -> None:
    uuid, build = slow(cloud)
    long_ago = utcnow() - timedelta(minutes=5)
    write(cloud, build["id"], kind="teleport", due_at=long_ago)
    (found,) = listed(cloud, "stuck=true")
    assert found["stuck"] == "unattended"
    assert "a release that knows teleport" in found["sentence"]
    refused = act(cloud, build["id"], {"cancel": None})
    assert (refused.status_code, "does not know" in refused.text) == (409, True)
    write(cloud, build["id"], kind="build")
    cloud.delete(uuid)
    cloud.await_gone([uuid])


@pytest.mark.parametrize(
    "body", [{}, {"retry": None, "cancel": None}, {"explode": None}, {"cancel": {"reason": ""}}, {"retry": 1}]
)
def test_what_makes_no_sense_is_refused(cloud: Yard, body: dict[str, Any]) -> None:
    assert act(cloud, 1, body).status_code == 400


def test_what_is_not_there_is_not_found(cloud: Yard) -> None:
    for name in ("999999", "x", "9" * 40):
        assert cloud.api.simulate_get(f"{PATH}/{name}").status_code == 404
        body = {"retry": None}
        assert cloud.api.simulate_post(f"{PATH}/{name}/action", json=body).status_code == 404
    assert cloud.api.simulate_get(f"{PATH}?state=odd").status_code == 400
    assert cloud.api.simulate_get(f"{PATH}?colour=red").status_code == 400


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "/1"), ("POST", "/1/action")])
def test_only_administrators_see_the_ledger(cloud: Yard, method: str, path: str) -> None:
    headers = {"x-auth-token": "someone:project"}
    body = {"json": {"retry": None}} if method == "POST" else {}
    reply = cloud.api.simulate_request(method, f"{PATH}{path}", headers=headers, **body)
    assert reply.status_code == 403
