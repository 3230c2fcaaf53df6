"""Pause, suspend, rescue, and back: what becomes of a server, and of what else may be asked meanwhile."""

from __future__ import annotations

import pytest

from moorage.agent import driver_tasks
from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour

RUNNING, PAUSED, SUSPENDED = 1, 3, 7
LIVE = {"os-migrateLive": {"host": None, "block_migration": "auto"}}
HARD = {"reboot": {"type": "HARD"}}


def ask(place: Harbour, uuid: str, name: str, status: str) -> int:
    """The power state in which the host has it after that."""
    place.act(uuid, {name: None})
    server = place.settled(uuid, status)
    (action, *_) = place.cloud.get(f"/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert (action["action"], action["message"]) == (name, None)
    power = place.copies(uuid)[place.host_of(uuid)].power
    assert server["OS-EXT-STS:power_state"] == power
    return power


def test_a_server_holds_still_and_goes_on(harbour: Make) -> None:
    place = harbour(hosts=2)
    uuid = place.running()
    held = place.held(uuid)
    assert ask(place, uuid, "pause", "PAUSED") == PAUSED
    assert ask(place, uuid, "unpause", "ACTIVE") == RUNNING
    assert ask(place, uuid, "suspend", "SUSPENDED") == SUSPENDED
    place.refused(uuid, LIVE, 409)
    assert ask(place, uuid, "resume", "ACTIVE") == RUNNING
    assert place.held(uuid) == held
    for name, status in (("pause", "PAUSED"), ("suspend", "SUSPENDED")):
        ask(place, uuid, name, status)
        place.act(uuid, HARD)
        place.settled(uuid, "ACTIVE")
    ask(place, uuid, "pause", "PAUSED")
    before = place.host_of(uuid)
    place.act(uuid, LIVE)
    place.settled(uuid, "PAUSED")
    assert place.host_of(uuid) != before
    assert place.only_on(uuid, place.host_of(uuid)).power == PAUSED
    place.cloud.delete(uuid)
    place.nothing_left(uuid)


def test_a_server_is_rescued_with_an_image_of_choice_or_its_own(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    own, before = place.cloud.server(uuid)["image"]["id"], place.copies(uuid)["fake-1"]
    other = place.add_image({"os_distro": "sysrescue"})
    for argument, image in ((None, own), ({"rescue_image_ref": other}, other)):
        place.act(uuid, {"rescue": argument}, status=200)
        assert place.settled(uuid, "RESCUE")["image"]["id"] == own
        there = place.only_on(uuid, "fake-1")
        assert (there.rescue_image, there.image, there.disk) == (image, own, before.disk)
        place.refused(uuid, {"os-stop": None}, 409)
        assert ask(place, uuid, "unrescue", "ACTIVE") == RUNNING
        assert place.copies(uuid)["fake-1"] == before


def test_what_fails_leaves_the_server_as_it_was(harbour: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    place = harbour(hosts=1)
    uuid = place.running(metadata={"fake:suspend": "fail"})
    place.act(uuid, {"suspend": None})
    place.settled(uuid, "ACTIVE")
    assert "suspend shall fail" in place.last_error(uuid)
    older = {kind: work for kind, work in driver_tasks._KINDS.items() if kind != "pause"}
    monkeypatch.setattr(driver_tasks, "_KINDS", older)
    place.act(uuid, {"pause": None})
    place.settled(uuid, "ACTIVE")
    assert place.last_error(uuid) == "this agent knows no task 'pause'"
