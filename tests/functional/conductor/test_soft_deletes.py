"""Deleted servers that are kept for a while, and what else a host is asked to do to a guest."""

from __future__ import annotations

import hashlib

import pytest

from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour


def used(place: Harbour) -> int:
    return int(place.used()["totalInstancesUsed"])


def test_a_deleted_server_comes_back_or_goes_for_good(harbour: Make) -> None:
    place = harbour(hosts=1, **{"compute.reclaim_interval": 3600})
    uuid = place.running()
    for _ in range(2):
        place.cloud.delete(uuid)
        (server,) = place.cloud.await_status([uuid], "SOFT_DELETED")
        assert (server["OS-EXT-STS:power_state"], used(place)) == (4, 0)
        assert place.only_on(uuid, "fake-1").power == 4
        place.refused(uuid, {"os-start": None}, 409)
        place.act(uuid, {"restore": None})
        place.settled(uuid, "ACTIVE")
        assert (place.only_on(uuid, "fake-1").power, used(place)) == (1, 1)
    place.cloud.delete(uuid)
    place.cloud.await_status([uuid], "SOFT_DELETED")
    place.act(uuid, {"forceDelete": None})
    place.nothing_left(uuid)
    assert used(place) == 0


def test_when_its_time_has_come_it_is_gone(harbour: Make) -> None:
    place = harbour(hosts=1, **{"compute.reclaim_interval": 1})
    uuid = place.running()
    place.cloud.delete(uuid)
    place.nothing_left(uuid)
    assert used(place) == 0


def test_a_guest_crashes_and_changes_its_password_when_told(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running(metadata={"colour": "red"})
    place.act(uuid, {"trigger_crash_dump": None})
    place.settled(uuid, "ACTIVE")
    place.act(uuid, {"changePassword": {"adminPass": "secret"}})
    there = place.only_on(uuid, "fake-1")
    assert (there.crash_dumps, there.password_hash) == (1, hashlib.sha256(b"secret").hexdigest())
    actions = place.cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert [one["action"] for one in actions[:2]] == ["changePassword", "trigger_crash_dump"]


@pytest.mark.parametrize("stopped", [False, True])
def test_a_password_that_is_not_changed_is_a_conflict(harbour: Make, stopped: bool) -> None:
    place = harbour(hosts=1)
    uuid = place.running(metadata={} if stopped else {"fake:change_password": "fail"})
    if stopped:  # behind our back
        place.cloud.cloud.agents["fake-1"]._driver.stop(uuid, "")
    words = place.refused(uuid, {"changePassword": {"adminPass": "secret"}}, 409)
    assert words.startswith(f"Failed to set admin password on {uuid} because ")
    assert "secret" not in place.last_error(uuid)
