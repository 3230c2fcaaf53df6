"""Resize and cold migration: a server moves, and everything that it has goes with it or stays as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moorage.drivers.contract import DriverError, Parcel
from moorage.drivers.fake.driver import FakeDriver
from tests.functional.conductor.conftest import Make


def test_a_server_is_migrated_and_confirmed(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    (before,) = place.copies(uuid).values()
    place.act(uuid, {"migrate": None})
    server = place.settled(uuid, "VERIFY_RESIZE")
    target = server["OS-EXT-SRV-ATTR:host"]
    assert target != source
    place.on_both(uuid, source, target)
    assert place.migrations(uuid)[0]["status"] == "finished"
    place.act(uuid, {"confirmResize": None}, status=204)
    server = place.settled(uuid, "ACTIVE")
    after = place.only_on(uuid, target)
    assert after.disk == before.disk
    assert server["OS-EXT-STS:power_state"] == 1
    (migration,) = place.migrations(uuid)
    assert (migration["status"], migration["migration_type"]) == ("confirmed", "migration")
    assert (migration["source_compute"], migration["dest_compute"]) == (source, target)


def test_a_server_that_was_off_stays_off(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    place.act(uuid, {"os-stop": None})
    place.settled(uuid, "SHUTOFF")
    place.act(uuid, {"migrate": {}})
    target = place.settled(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    assert place.copies(uuid)[target].power == 4
    place.act(uuid, {"confirmResize": None}, status=204)
    place.settled(uuid, "SHUTOFF")
    place.only_on(uuid, target)


def test_a_resize_gives_another_flavor_and_reverting_takes_it_back(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source, before = place.host_of(uuid), place.held(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    server = place.settled(uuid, "VERIFY_RESIZE")
    target = server["OS-EXT-SRV-ATTR:host"]
    assert server["flavor"]["original_name"] == "m1.medium"
    assert place.held(uuid) == {target: {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 40}}
    place.on_both(uuid, source, target)
    place.act(uuid, {"revertResize": None})
    server = place.settled(uuid, "ACTIVE")
    assert server["flavor"]["original_name"] == "m1.tiny"
    assert place.only_on(uuid, source).power == 1
    assert place.held(uuid) == before
    assert place.migrations(uuid)[0]["status"] == "reverted"
    assert place.used()["totalCoresUsed"] == 1


def test_a_resize_is_confirmed_by_itself_after_the_window(harbour: Make) -> None:
    place = harbour(**{"conductor.resize_confirm_window": 1})
    uuid = place.running()
    place.act(uuid, {"resize": {"flavorRef": "2"}})
    server = place.settled(uuid, "ACTIVE")
    assert server["flavor"]["original_name"] == "m1.small"
    place.only_on(uuid, server["OS-EXT-SRV-ATTR:host"])
    assert place.migrations(uuid)[0]["status"] == "confirmed"
    actions = place.cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert [(one["action"], one["message"]) for one in actions[:2]] == [
        ("confirmResize", None),
        ("resize", None),
    ]


def test_who_decides_before_the_window_ends_decides(harbour: Make) -> None:
    place = harbour(**{"conductor.resize_confirm_window": 60})
    uuid = place.running()
    source = place.host_of(uuid)
    place.act(uuid, {"migrate": None})
    place.cloud.await_status([uuid], "VERIFY_RESIZE")
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, source)


@pytest.mark.parametrize("step", ["hand_over", "take_over"])
def test_a_move_that_fails_leaves_the_server_as_it_was(harbour: Make, step: str) -> None:
    place = harbour()
    uuid = place.running(metadata={f"fake:{step}": "fail"})
    source, before, addresses = place.host_of(uuid), place.held(uuid), place.addresses(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    server = place.settled(uuid, "ACTIVE")
    assert server["flavor"]["original_name"] == "m1.tiny"
    assert place.only_on(uuid, source).power == 1
    assert place.held(uuid) == before
    assert place.addresses(uuid) == addresses
    assert f"{step} shall fail" in place.last_error(uuid)
    assert place.migrations(uuid)[0]["status"] == "error"
    assert place.used()["totalCoresUsed"] == 1
    place.act(uuid, {"os-stop": None})
    place.settled(uuid, "SHUTOFF")


def test_a_destination_that_fails_is_left_for_the_next(harbour: Make) -> None:
    place = harbour(hosts=4, **{"scheduler.max_attempts": 3})
    uuid = place.running(metadata={"fake:take_over": "fail_here"})
    source = place.host_of(uuid)
    place.act(uuid, {"migrate": None})
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, source).power == 1
    trace = place.cloud.get(f"/v2.1/servers/{uuid}/moorage-trace")["traces"]
    moves = [one["trace"]["chosen"]["host"] for one in trace[1:]]
    assert len(moves) == len(set(moves)) == 3
    assert source not in moves
    assert [(one["operation"], one["attempt"]) for one in trace] == [
        ("build", 1),
        *(("cold_move", number) for number in (1, 2, 3)),
    ]


def test_a_destination_that_dies_is_left_for_the_next(harbour: Make) -> None:
    place = harbour(hosts=3, **{"conductor.ask_again_seconds": 1})
    uuid = place.running(metadata={"fake:take_over": "delay=3"})
    source = place.host_of(uuid)
    place.act(uuid, {"migrate": None})
    first = place.await_destination(uuid)
    place.die(first)
    server = place.settled(uuid, "VERIFY_RESIZE")
    assert server["OS-EXT-SRV-ATTR:host"] not in (source, first)
    place.act(uuid, {"confirmResize": None}, status=204)
    target = place.settled(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"]
    place.set_service(first, forced_down=False)
    place.only_on(uuid, target)


@pytest.mark.parametrize("step", ["hand_over", "take_over"])
def test_deleting_in_mid_move_cleans_both_ends(harbour: Make, step: str) -> None:
    place = harbour()
    uuid = place.running(metadata={f"fake:{step}": "delay=30"})
    place.act(uuid, {"migrate": None})
    place.await_task_state(uuid, {"hand_over": "resize_migrating", "take_over": "resize_finish"}[step])
    place.cloud.delete(uuid)
    place.nothing_left(uuid)


def test_deleting_what_waits_to_be_confirmed_cleans_both_ends(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    place.settled(uuid, "VERIFY_RESIZE")
    place.cloud.delete(uuid)
    place.nothing_left(uuid)
    assert place.used()["totalCoresUsed"] == 0


def test_resetting_a_server_in_mid_move_lets_it_stay_where_it_is(harbour: Make) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:take_over": "delay=30"})
    source = place.host_of(uuid)
    place.act(uuid, {"migrate": None})
    place.await_task_state(uuid, "resize_finish")
    place.act(uuid, {"os-resetState": {"state": "active"}})
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, source).power == 1


def test_resetting_a_server_that_has_moved_lets_it_stay_there(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    place.act(uuid, {"migrate": None})
    target = place.settled(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    place.act(uuid, {"os-resetState": {"state": "active"}})
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, target).power == 1


def test_confirming_and_reverting_need_the_source(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    place.act(uuid, {"migrate": None})
    target = place.settled(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    place.die(source)
    assert "unavailable" in place.refused(uuid, {"confirmResize": None}, 409)
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "VERIFY_RESIZE")
    assert place.host_of(uuid) == target
    place.set_service(source, forced_down=False)
    place.act(uuid, {"confirmResize": None}, status=204)
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, target)


def test_quota_is_taken_in_advance_and_given_back(harbour: Make) -> None:
    place = harbour(**{"quota.cores": 3})
    uuid = place.running()
    message = place.refused(uuid, {"resize": {"flavorRef": "4"}}, 403)
    assert "Quota exceeded for cores: Requested 3, but already used 1 of 3 cores" in message
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    assert place.used()["totalCoresUsed"] == 2
    place.settled(uuid, "VERIFY_RESIZE")
    assert place.used()["totalCoresUsed"] == 2
    place.cloud.delete(uuid)
    place.nothing_left(uuid)
    assert place.used()["totalCoresUsed"] == 0


def test_what_makes_no_sense_is_refused(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    for body, status, words in (
        ({"migrate": {"host": "nowhere"}}, 400, "Compute host nowhere could not be found."),
        ({"migrate": {"host": source}}, 400, "Cannot migrate to the host where the server exists."),
        ({"resize": {"flavorRef": "1"}}, 400, "must change flavor"),
        ({"resize": {"flavorRef": "none"}}, 400, "could not be found"),
        ({"confirmResize": None}, 409, "Cannot 'confirmResize' instance"),
        ({"revertResize": None}, 409, "Cannot 'revertResize' instance"),
    ):
        assert words in place.refused(uuid, body, status)
    place.die(source)
    assert "unavailable" in place.refused(uuid, {"migrate": None}, 409)
    place.settled(uuid, "ACTIVE")


def test_members_of_a_group_stay_apart_when_one_moves(harbour: Make) -> None:
    place = harbour(hosts=3)
    made = place.cloud.api.simulate_post(
        "/v2.1/os-server-groups", json={"server_group": {"name": "apart", "policy": "anti-affinity"}}
    )
    hint = {"group": made.json["server_group"]["id"]}
    first, second = place.running(hints=hint), place.running(hints=hint)
    place.act(first, {"migrate": None})
    place.settled(first, "VERIFY_RESIZE")
    assert place.host_of(first) != place.host_of(second)
    place.act(first, {"revertResize": None})
    place.settled(first, "ACTIVE")
    third = place.running(hints=hint)
    assert len({place.host_of(uuid) for uuid in (first, second, third)}) == 3


def test_a_server_that_can_t_have_a_flavor_is_not_shut_down_for_it(
    harbour: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_over: list[str] = []

    def refuse(driver: FakeDriver, server_uuid: str, node_uuid: str, flavor: Mapping[str, Any]) -> None:
        raise DriverError(f"no disk is ever made {flavor['disk']} GiB")

    def hand_over(driver: FakeDriver, server_uuid: str, node_uuid: str) -> Parcel:
        handed_over.append(server_uuid)
        return {}

    monkeypatch.setattr(FakeDriver, "check_resize", refuse, raising=False)
    monkeypatch.setattr(FakeDriver, "hand_over", hand_over)
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    server = place.settled(uuid, "ACTIVE")
    assert handed_over == []
    assert place.only_on(uuid, source).power == 1
    assert server["flavor"]["original_name"] == "m1.tiny"
    assert place.migrations(uuid)[0]["status"] == "error"
