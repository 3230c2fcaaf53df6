"""Boot, run and delete, through the API, with the real conductor and agents in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage.conductor.engine import runner
from moorage.placement.client.contract import PlacementUnavailableError
from moorage.placement.client.local import LocalPlacement
from tests.functional.conductor.conftest import Yard

Make = Callable[..., Yard]


def test_servers_run_on_different_hosts_with_addresses_and_claims(yard: Make) -> None:
    cloud = yard(hosts=2)
    uuids = cloud.boot(count=2)
    servers = cloud.await_status(uuids, "ACTIVE")
    assert {server["OS-EXT-SRV-ATTR:host"] for server in servers} == {"fake-1", "fake-2"}
    assert all(server["addresses"]["private"] for server in servers)
    assert cloud.holders() == cloud.addressed() == set(uuids)


def test_a_deleted_server_leaves_nothing_behind(yard: Make) -> None:
    cloud = yard(hosts=1)
    uuids = cloud.boot()
    cloud.await_status(uuids, "ACTIVE")
    cloud.delete(uuids[0])
    cloud.await_gone(uuids)
    assert cloud.holders() == cloud.addressed() == set()


def test_power_follows_what_users_ask_for(yard: Make) -> None:
    cloud = yard(hosts=1)
    uuids = cloud.boot()
    cloud.await_status(uuids, "ACTIVE")
    for body, status in (
        ({"os-stop": None}, "SHUTOFF"),
        ({"os-start": None}, "ACTIVE"),
        ({"reboot": {"type": "HARD"}}, "ACTIVE"),
    ):
        reply = cloud.api.simulate_post(f"/v2.1/servers/{uuids[0]}/action", json=body)
        assert reply.status_code == 202, reply.text
        cloud.await_rest()
        assert cloud.server(uuids[0])["status"] == status


def test_no_room_is_told_in_a_sentence_with_numbers(yard: Make) -> None:
    cloud = yard(hosts=2)
    (uuid,) = cloud.boot(flavorRef="5")
    (server,) = cloud.await_status([uuid], "ERROR")
    assert "No valid host was found" in server["fault"]["message"]
    assert "2" in server["fault"]["message"]
    assert cloud.holders() == cloud.addressed() == set()


def test_a_server_may_wait_for_capacity(yard: Make) -> None:
    cloud = yard(hosts=1, **{"scheduler.pending_timeout": 60})
    first = cloud.boot(count=2)
    cloud.await_status(first, "ACTIVE")
    (late,) = cloud.boot()
    cloud.await_status([late], "BUILD")
    cloud.delete(first[0])
    cloud.await_status([late], "ACTIVE")


def test_a_host_that_fails_is_left_for_the_next(yard: Make) -> None:
    cloud = yard(hosts=3)
    uuids = cloud.boot(metadata={"fake:spawn": "fail_here@0.5"}, count=3)
    servers = cloud.await_status(uuids, "ACTIVE", "ERROR")
    cloud.await_rest()
    running = {server["id"] for server in servers if server["status"] == "ACTIVE"}
    assert cloud.holders() == cloud.addressed() == running


def test_a_server_that_nobody_can_make_is_told_why(yard: Make) -> None:
    cloud = yard(hosts=3)
    (uuid,) = cloud.boot(metadata={"fake:spawn": "fail"})
    (server,) = cloud.await_status([uuid], "ERROR")
    assert server["fault"]["message"]
    cloud.delete(uuid)
    cloud.await_gone([uuid])
    assert cloud.holders() == cloud.addressed() == set()


def test_deleting_at_any_moment_of_a_build_is_clean(yard: Make) -> None:
    cloud = yard(hosts=2, **{"fake.vcpus": 64})
    uuids = cloud.boot(count=8, metadata={"fake:spawn": "delay=0.2"})
    for uuid in uuids:
        cloud.delete(uuid)
    cloud.await_gone(uuids)
    cloud.await_rest()
    assert cloud.holders() == cloud.addressed() == set()


def test_members_of_a_group_stay_apart_when_they_are_booted_at_once(yard: Make) -> None:
    cloud = yard(hosts=3, **{"fake.vcpus": 64, "conductor.threads": 4, "conductor.batch": 1})
    made = cloud.api.simulate_post(
        "/v2.1/os-server-groups", json={"server_group": {"name": "apart", "policy": "anti-affinity"}}
    )
    assert made.status_code == 200, made.text
    hint = {"group": made.json["server_group"]["id"]}
    uuids = [uuid for _ in range(3) for uuid in cloud.boot(hints=hint)]
    servers = cloud.await_status(uuids, "ACTIVE")
    assert len({server["OS-EXT-SRV-ATTR:host"] for server in servers}) == 3


def test_a_backend_that_stays_away_leaves_no_server_stuck(
    yard: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = yard(hosts=1)
    monkeypatch.setattr(runner, "_MOST_TRIES", 1)

    def away(*_: object) -> None:
        raise PlacementUnavailableError("nobody answers")

    monkeypatch.setattr(LocalPlacement, "candidates", away)
    (uuid,) = cloud.boot()
    (server,) = cloud.await_status([uuid], "ERROR")
    assert "nobody answers" in server["fault"]["message"]
    assert server["OS-EXT-STS:task_state"] is None
    cloud.delete(uuid)
    cloud.await_gone([uuid])
