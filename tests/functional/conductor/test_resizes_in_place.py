"""A resize on the host that the server is on: both flavors are held there until it is final."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from moorage.conductor.operations.moves import moving
from moorage.drivers.contract import DriverError
from moorage.drivers.fake.driver import FakeDriver
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour

MEDIUM = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 40}
ALLOWED = {"compute.allow_resize_to_same_host": True}


def resized(place: Harbour, **fields: Any) -> tuple[str, str]:
    """A server that has another flavor on the only host, and that host."""
    uuid = place.running(**fields)
    host = place.host_of(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    server = place.settled(uuid, "VERIFY_RESIZE")
    assert server["OS-EXT-SRV-ATTR:host"] == host
    return uuid, host


def test_both_flavors_are_held_until_it_is_confirmed(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid = place.running()
    (before,) = place.copies(uuid).values()
    host, held = place.host_of(uuid), place.held(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    server = place.settled(uuid, "VERIFY_RESIZE")
    assert server["flavor"]["original_name"] == "m1.medium"
    (migration,) = place.migrations(uuid)
    assert migration["source_compute"] == migration["dest_compute"] == host
    assert place.held(uuid) == {host: MEDIUM}
    assert place.held(migration["uuid"]) == held
    place.act(uuid, {"confirmResize": None}, status=204)
    assert place.settled(uuid, "ACTIVE")["flavor"]["original_name"] == "m1.medium"
    after = place.only_on(uuid, host)
    assert (after.disk, after.flavor, after.before, after.power) == (before.disk, "3", None, 1)
    assert place.held(uuid) == {host: MEDIUM}
    assert place.used()["totalCoresUsed"] == 2


def test_reverting_gives_the_old_flavor_back(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid = place.running()
    host, held, addresses = place.host_of(uuid), place.held(uuid), place.addresses(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    place.settled(uuid, "VERIFY_RESIZE")
    place.act(uuid, {"revertResize": None})
    assert place.settled(uuid, "ACTIVE")["flavor"]["original_name"] == "m1.tiny"
    after = place.only_on(uuid, host)
    assert (after.flavor, after.before, after.power) == ("1", None, 1)
    assert place.held(uuid) == held
    assert place.addresses(uuid) == addresses
    assert place.migrations(uuid)[0]["status"] == "reverted"
    assert place.used()["totalCoresUsed"] == 1


def test_by_default_a_resize_goes_to_another_host(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    host = place.host_of(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    assert place.settled(uuid, "ACTIVE")["flavor"]["original_name"] == "m1.tiny"
    place.only_on(uuid, host)


def test_a_migration_never_stays(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid = place.running()
    host = place.host_of(uuid)
    place.act(uuid, {"migrate": None})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, host)
    assert place.migrations(uuid)[0]["status"] == "error"


def test_a_host_without_room_for_both_is_no_place(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED, **{"fake.ram_mb": 4096 + 256, "fake.ram_allocation_ratio": 1.0})
    uuid = place.running()
    host, held = place.host_of(uuid), place.held(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, host)
    assert place.held(uuid) == held


def test_a_server_that_was_off_stays_off(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid = place.running()
    place.act(uuid, {"os-stop": None})
    place.settled(uuid, "SHUTOFF")
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    place.settled(uuid, "VERIFY_RESIZE")
    place.act(uuid, {"confirmResize": None}, status=204)
    place.settled(uuid, "SHUTOFF")
    assert place.only_on(uuid, place.host_of(uuid)).power == 4


@pytest.mark.parametrize("step", ["hand_over", "take_over"])
def test_one_that_fails_leaves_the_server_as_it_was(harbour: Make, step: str) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid = place.running(metadata={f"fake:{step}": "fail"})
    host, held = place.host_of(uuid), place.held(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    assert place.settled(uuid, "ACTIVE")["flavor"]["original_name"] == "m1.tiny"
    after = place.only_on(uuid, host)
    assert (after.flavor, after.power) == ("1", 1)
    assert place.held(uuid) == held
    assert f"{step} shall fail" in place.last_error(uuid)


def test_one_that_hangs_is_cut_short_and_undone(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED, **{"fake.hang_seconds": 2})
    uuid = place.running(metadata={"fake:take_over": "hang"})
    host, held = place.host_of(uuid), place.held(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, host).flavor == "1"
    assert place.held(uuid) == held


@pytest.mark.parametrize("way", ["confirmResize", "revertResize"])
def test_a_host_that_fails_once_is_asked_again(
    harbour: Make, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    task = "keep_resize" if way == "confirmResize" else "undo_resize"
    place = harbour(hosts=1, **ALLOWED)
    uuid, host = resized(place)
    able, asked = getattr(FakeDriver, task), []

    def fail_at_first(driver: FakeDriver, server_uuid: str, node_uuid: str) -> None:
        asked.append(server_uuid)
        if len(asked) == 1:
            raise DriverError("not today")
        able(driver, server_uuid, node_uuid)

    monkeypatch.setattr(FakeDriver, task, fail_at_first)
    place.act(uuid, {way: None}, status=204 if way == "confirmResize" else 202)
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, host).before is None
    assert len(asked) == 2


def test_a_revert_that_the_host_can_t_do_can_be_asked_again(
    harbour: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "_CLEAN_AGAIN_SECONDS", 0.01)
    place = harbour(hosts=1, **ALLOWED)
    uuid, host = resized(place)
    with monkeypatch.context() as patch:
        patch.setattr(FakeDriver, "undo_resize", _fail)
        place.act(uuid, {"revertResize": None})
        place.settled(uuid, "VERIFY_RESIZE")
    assert place.held(uuid) == {host: MEDIUM}
    assert "not today" in place.last_error(uuid)
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, host).flavor == "1"


def _fail(_driver: FakeDriver, _server_uuid: str, _node_uuid: str) -> None:
    raise DriverError("not today")


def test_a_server_waits_for_its_host_before_it_is_what_it_was(
    harbour: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else knows how to make it that."""
    place = harbour(hosts=1, **ALLOWED, **{"conductor.ask_again_seconds": 1})
    uuid, host = resized(place, metadata={"fake:undo_resize": "delay=1"})
    undo, begun = FakeDriver.undo_resize, threading.Event()

    def undo_and_tell(driver: FakeDriver, server_uuid: str, node_uuid: str) -> None:
        begun.set()
        undo(driver, server_uuid, node_uuid)

    monkeypatch.setattr(FakeDriver, "undo_resize", undo_and_tell)
    place.act(uuid, {"revertResize": None})
    assert begun.wait(20)
    place.stop_agent(host)
    place.die(host)
    time.sleep(3)
    assert place.cloud.server(uuid)["OS-EXT-STS:task_state"] == "resize_reverting"
    assert place.held(uuid) == {host: MEDIUM}
    place.start_agent(host)
    assert place.settled(uuid, "ACTIVE")["flavor"]["original_name"] == "m1.tiny"
    assert place.only_on(uuid, host).flavor == "1"


def test_resetting_one_that_has_its_new_flavor_keeps_it(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid, host = resized(place)
    place.act(uuid, {"os-resetState": {"state": "active"}})
    assert place.settled(uuid, "ACTIVE")["flavor"]["original_name"] == "m1.medium"
    after = place.only_on(uuid, host)
    assert (after.flavor, after.before) == ("3", None)
    assert place.held(uuid) == {host: MEDIUM}


def test_resetting_one_in_mid_resize_undoes_it(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid = place.running(metadata={"fake:take_over": "delay=3"})
    host, held = place.host_of(uuid), place.held(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    place.await_destination(uuid)
    place.act(uuid, {"os-resetState": {"state": "active"}})
    assert place.settled(uuid, "ACTIVE")["flavor"]["original_name"] == "m1.tiny"
    assert place.only_on(uuid, host).flavor == "1"
    assert place.held(uuid) == held


def test_deleting_one_leaves_nothing(harbour: Make) -> None:
    place = harbour(hosts=1, **ALLOWED)
    uuid, _ = resized(place)
    place.cloud.delete(uuid)
    place.nothing_left(uuid)
    assert place.used()["totalCoresUsed"] == 0
