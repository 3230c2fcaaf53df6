"""A cloud that keeps deleted servers for a while: who sees them, and how they come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.compute.servers import soft_deletes
from moorage.compute.servers.states import VmState
from tests.functional.compute.servers.conftest import Cloud


@pytest.fixture
def configuration(tmp_path: Path) -> list[str]:
    file = tmp_path / "moorage.conf"
    file.write_text("[compute]\nreclaim_interval = 3600\n")
    return [str(file)]


@pytest.fixture
def running(cloud: Cloud) -> str:
    uuid = cloud.alice.booted()
    cloud.run(uuid)
    return uuid


def delete(cloud: Cloud, uuid: str) -> None:
    assert cloud.alice.call("DELETE", f"/servers/{uuid}").status_code == 204


def listed(cloud: Cloud, query: str = "") -> list[str]:
    return [one["id"] for one in cloud.alice.get(f"/servers{query}")["servers"]]


def test_a_server_that_has_run_is_kept(cloud: Cloud, running: str) -> None:
    for _ in range(2):
        delete(cloud, running)
        assert cloud.server(running).task_state == "soft-deleting"
    assert cloud.operations(running)[1:] == [("soft_delete", None)]
    cloud.run(running, vm_state=VmState.SOFT_DELETED)
    delete(cloud, running)
    assert cloud.server(running).task_state is None
    assert cloud.alice.get(f"/servers/{running}")["server"]["status"] == "SOFT_DELETED"
    assert listed(cloud) == []
    assert listed(cloud, "?status=soft_deleted") == [running]
    answer = cloud.alice.call("POST", f"/servers/{running}/action", {"forceDelete": None})
    assert (answer.status_code, cloud.server(running).task_state) == (202, "deleting")


def test_a_server_that_never_ran_is_not(cloud: Cloud) -> None:
    uuid = cloud.alice.booted()
    delete(cloud, uuid)
    assert cloud.server(uuid).task_state == "deleting"


def test_it_comes_back_if_its_project_has_room(cloud: Cloud, running: str) -> None:
    cloud.limit("red", instances=1)
    keep(cloud, running)
    assert cloud.usage("red")[0] == 0
    other = cloud.alice.booted()
    path, body = f"/servers/{running}/action", {"restore": None}
    assert "Quota exceeded for instances" in cloud.alice.refused(403, "POST", path, body)
    cloud.limit("red", instances=2)
    assert cloud.alice.call("POST", path, body).status_code == 202
    assert cloud.server(running).task_state == "restoring"
    assert cloud.operations(running)[-1] == ("restore", None)
    assert cloud.usage("red")[0] == 2
    cloud.end(running)
    cloud.end(other)
    assert cloud.usage("red") == (0, 0, 0)


def keep(cloud: Cloud, uuid: str) -> None:
    """What the conductor does at the end of a soft delete."""
    cloud.run(uuid, vm_state=VmState.SOFT_DELETED)
    server = cloud.server(uuid)
    cloud.database.transact(lambda connection: soft_deletes.reclaim_later(connection, server, 3600))


def test_whatever_becomes_of_it_its_quota_is_counted_once(cloud: Cloud, running: str) -> None:
    path = f"/servers/{running}/action"
    keep(cloud, running)
    assert cloud.alice.call("POST", path, {"restore": None}).status_code == 202
    delete(cloud, running)
    assert cloud.server(running).task_state == "soft-deleting"
    keep(cloud, running)
    assert cloud.usage("red")[0] == 0
    assert cloud.admin.call("POST", path, {"os-resetState": {"state": "active"}}).status_code == 202
    assert cloud.usage("red")[0] == 1
    assert cloud.operations(running)[-1] == ("delete", "cancelled")
    keep(cloud, running)
    cloud.end(running)
    assert cloud.usage("red") == (0, 0, 0)
