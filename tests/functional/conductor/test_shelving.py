"""Shelved servers: what they give back, what they keep, and where they come back."""

from __future__ import annotations

from typing import Any

from tests.functional.conductor.conftest import Make
from tests.functional.conductor.harbour import Harbour
from tests.functional.conductor.test_snapshots import await_none, images


def ask(place: Harbour, uuid: str, name: str, status: str, argument: Any = None) -> Any:
    place.act(uuid, {name: argument})
    return place.settled(uuid, status)


def offloaded(place: Harbour, uuid: str) -> None:
    """Nothing is left of it but its addresses and its image."""
    assert place.copies(uuid) == {}
    assert place.cloud.holders() - place.strangers == set()
    assert place.cloud.addressed() == {uuid}
    (image,) = images(place, uuid)
    assert (image["name"], image["status"]) == ("s-shelved", "active")


def test_a_server_gives_its_host_back_and_gets_another(harbour: Make) -> None:
    place = harbour(hosts=2)
    uuid = place.running()
    own, addresses, used = place.cloud.server(uuid)["image"], place.addresses(uuid), place.used()
    server = ask(place, uuid, "shelve", "SHELVED_OFFLOADED")
    assert (server["OS-EXT-SRV-ATTR:host"], server["image"], server["addresses"]) == (None, own, addresses)
    offloaded(place, uuid)
    (image,) = images(place, uuid)
    for _ in range(2):
        ask(place, uuid, "unshelve", "ACTIVE", {"host": "fake-2"})
        assert place.only_on(uuid, "fake-2").image == image["id"]
        assert place.cloud.server(uuid)["image"] == own
        assert (place.addresses(uuid), place.used()) == (addresses, used)
        await_none(place, uuid)
        ask(place, uuid, "shelve", "SHELVED_OFFLOADED")
        offloaded(place, uuid)
        (image,) = images(place, uuid)
    place.cloud.delete(uuid)
    place.nothing_left(uuid)
    await_none(place, uuid)


def test_a_shelved_server_may_stay_on_its_host(harbour: Make) -> None:
    place = harbour(hosts=2, **{"compute.shelved_offload_time": -1})
    uuid = place.running()
    host = place.host_of(uuid)
    ask(place, uuid, "suspend", "SUSPENDED")
    ask(place, uuid, "shelve", "SHELVED")
    assert place.only_on(uuid, host).power == 4
    place.refused(uuid, {"os-start": None}, 409)
    ask(place, uuid, "unshelve", "ACTIVE")
    assert place.only_on(uuid, host).power == 1
    await_none(place, uuid)
    ask(place, uuid, "shelve", "SHELVED")
    ask(place, uuid, "shelveOffload", "SHELVED_OFFLOADED")
    offloaded(place, uuid)


def test_after_a_while_it_leaves_its_host(harbour: Make) -> None:
    place = harbour(hosts=1, **{"compute.shelved_offload_time": 1})
    uuid = place.running()
    place.act(uuid, {"shelve": None})
    place.cloud.await_status([uuid], "SHELVED")
    place.settled(uuid, "SHELVED_OFFLOADED")
    offloaded(place, uuid)


def test_without_room_it_stays_as_it_is(harbour: Make) -> None:
    place = harbour(hosts=1, **{"fake.vcpus": 1})
    uuid = place.running()
    ask(place, uuid, "shelve", "SHELVED_OFFLOADED")
    other = place.running()
    place.act(uuid, {"unshelve": None})
    place.settled(uuid, "SHELVED_OFFLOADED")
    assert place.last_error(uuid).startswith("No valid host was found")
    place.cloud.delete(other)
    place.cloud.await_gone([other])
    offloaded(place, uuid)
    ask(place, uuid, "unshelve", "ACTIVE")
    place.only_on(uuid, "fake-1")


def test_what_fails_leaves_something_that_can_be_tried_again(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running(metadata={"fake:snapshot": "fail"})
    place.act(uuid, {"shelve": None})
    place.settled(uuid, "SHUTOFF")
    assert "snapshot shall fail" in place.last_error(uuid)
    assert images(place, uuid) == []
    ask(place, uuid, "os-start", "ACTIVE")
    place.cloud.delete(uuid)
    place.nothing_left(uuid)
