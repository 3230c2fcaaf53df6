"""Evacuation: servers of a dead host come back elsewhere, and a host that lives after all cleans up."""

from __future__ import annotations

import pytest

from moorage.drivers.fake.driver import FakeDriver
from tests.functional.conductor.conftest import Make


def test_a_server_comes_back_elsewhere_from_its_image(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source, before, addresses = place.host_of(uuid), place.copies(uuid), place.addresses(uuid)
    place.die(source)
    assert place.act(uuid, {"evacuate": {}}, status=200) is None
    server = place.settled(uuid, "SHUTOFF")
    target = server["OS-EXT-SRV-ATTR:host"]
    assert target != source
    after = place.only_on(uuid, target)
    assert after.disk != before[source].disk
    assert after.power == 4
    assert place.addresses(uuid) == addresses
    (migration,) = place.migrations(uuid)
    assert (migration["status"], migration["migration_type"]) == ("done", "evacuation")
    assert (migration["source_compute"], migration["dest_compute"]) == (source, target)


@pytest.mark.parametrize(("stop", "status", "power"), [(False, "ACTIVE", 1), (True, "SHUTOFF", 4)])
def test_before_2_95_a_server_is_what_it_was(harbour: Make, stop: bool, status: str, power: int) -> None:
    place = harbour()
    uuid = place.running()
    if stop:
        place.act(uuid, {"os-stop": None})
        place.settled(uuid, "SHUTOFF")
    place.die(place.host_of(uuid))
    answer = place.act(uuid, {"evacuate": {"onSharedStorage": False}}, version="2.13", status=200)
    assert len(answer["adminPass"]) == 12
    place.settled(uuid, status)
    assert place.only_on(uuid, place.host_of(uuid)).power == power


def test_a_host_that_comes_back_removes_what_was_evacuated(harbour: Make) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:destroy": "delay=1"})
    source = place.host_of(uuid)
    place.stop_agent(source)
    place.die(source)
    place.act(uuid, {"evacuate": {}}, status=200)
    target = place.settled(uuid, "SHUTOFF")["OS-EXT-SRV-ATTR:host"]
    assert set(place.copies(uuid)) == {source, target}
    assert set(place.held(uuid)) == {target}
    place.start_agent(source)
    place.only_on(uuid, target)


def test_where_to_may_be_said(harbour: Make) -> None:
    place = harbour(hosts=4)
    uuid = place.running()
    source = place.host_of(uuid)
    target = next(f"fake-{number}" for number in (4, 3) if f"fake-{number}" != source)
    place.die(source)
    place.act(uuid, {"evacuate": {"host": target}}, status=200)
    assert place.settled(uuid, "SHUTOFF")["OS-EXT-SRV-ATTR:host"] == target
    place.only_on(uuid, target)


def test_what_makes_no_sense_is_refused(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    assert f"Compute service of {source} is still in use." in place.refused(uuid, {"evacuate": {}}, 400)
    place.die(source)
    for body, status, words, version in (
        ({"host": "nowhere"}, 404, "Compute host nowhere not found.", "2.96"),
        ({"host": source}, 400, "The target host can't be the same one.", "2.96"),
        ({"force": True}, 400, "Can't force to a non-provided destination", "2.29"),
        ({"onSharedStorage": True, "adminPass": "x"}, 400, "can't be changed on existing disk", "2.1"),
        ({"onSharedStorage": True}, 400, "onSharedStorage", "2.14"),
    ):
        assert words in place.refused(uuid, {"evacuate": body}, status, version=version)
    place.settled(uuid, "ACTIVE")


def test_an_evacuation_that_finds_no_host_changes_nothing(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source, before = place.host_of(uuid), place.held(uuid)
    (other,) = {"fake-1", "fake-2"} - {source}
    place.set_service(other, status="disabled", disabled_reason="rain")
    place.die(source)
    place.act(uuid, {"evacuate": {}}, status=200)
    place.settled(uuid, "ACTIVE")
    assert place.host_of(uuid) == source
    assert place.held(uuid) == before
    assert "No valid host was found" in place.last_error(uuid)
    assert place.migrations(uuid)[0]["status"] == "error"


def test_a_destination_that_fails_is_left_for_the_next(harbour: Make) -> None:
    place = harbour(hosts=3)
    uuid = place.running()
    source = place.host_of(uuid)
    place.set_metadata(uuid, {"fake:spawn": "fail_here"})
    place.die(source)
    place.act(uuid, {"evacuate": {}}, status=200)
    place.settled(uuid, "ACTIVE")
    assert set(place.held(uuid)) == {source}
    assert place.cloud.holders() == {uuid}
    hosts = [one["trace"]["chosen"]["host"] for one in place.traces(uuid)[1:] if one["trace"]["chosen"]]
    assert sorted(hosts) == sorted({"fake-1", "fake-2", "fake-3"} - {source})


def test_deleting_in_mid_evacuation_leaves_nothing(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    place.set_metadata(uuid, {"fake:spawn": "delay=30"})
    place.die(place.host_of(uuid))
    place.act(uuid, {"evacuate": {}}, status=200)
    place.await_task_state(uuid, "rebuild_spawning")
    place.cloud.delete(uuid)
    place.cloud.await_gone([uuid])
    assert place.cloud.holders() == place.cloud.addressed() == set()


def test_who_has_a_deleted_server_last_keeps_nothing_for_dead_hosts(
    harbour: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    forsaken: list[tuple[str, str]] = []

    def forsake(driver: FakeDriver, server_uuid: str) -> None:
        forsaken.append((driver.nodes()[0].name, server_uuid))

    monkeypatch.setattr(FakeDriver, "forsake", forsake, raising=False)
    place = harbour()
    moved = place.running()
    place.act(moved, {"migrate": None})
    there = place.settled(moved, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    place.cloud.delete(moved)
    place.cloud.await_gone([moved])
    assert [uuid for _, uuid in forsaken] == [moved], "of two hosts that live, only the last one"
    assert not forsaken[0][0].startswith(there)
    forsaken.clear()
    dead = place.running()
    place.die(place.host_of(dead))
    place.act(dead, {"evacuate": {}}, status=200)
    there = place.settled(dead, "SHUTOFF")["OS-EXT-SRV-ATTR:host"]
    place.cloud.delete(dead)
    place.cloud.await_gone([dead])
    ((node, uuid),) = forsaken
    assert (node.startswith(there), uuid) == (True, dead)
