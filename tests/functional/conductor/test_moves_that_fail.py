"""What can fail once a server has moved, or on its way back: it never runs twice, and its books are right."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.conductor.operations.moves import moving
from moorage.network.contract import Binding, NetworkError, PortRecord
from moorage.network.pool import PoolNetwork
from tests.functional.conductor.conftest import Make


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails is tried again at once, and not often."""
    monkeypatch.setattr(moving, "_CLEAN_AGAIN_SECONDS", 0.05)
    monkeypatch.setattr(moving, "_MOST_CLEANINGS", 2)


def test_a_source_that_does_not_start_it_again_leaves_it_in_error(harbour: Make) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:take_over": "fail", "fake:start": "fail"})
    source, before, addresses = place.host_of(uuid), place.held(uuid), place.addresses(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    server = place.settled(uuid, "ERROR")
    assert "did not start again at its host" in server["fault"]["message"]
    assert server["flavor"]["original_name"] == "m1.tiny"
    assert (place.host_of(uuid), place.held(uuid), place.addresses(uuid)) == (source, before, addresses)
    assert "not over yet" in place.refused(uuid, {"rebuild": {"imageRef": server["image"]["id"]}}, 409)


@pytest.mark.parametrize(
    ("decision", "status"), [({"confirmResize": None}, 204), ({"revertResize": None}, 202)]
)
def test_an_end_that_can_not_remove_it_leaves_the_decision_open(
    harbour: Make, decision: dict[str, Any], status: int
) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:destroy": "fail"})
    source = place.host_of(uuid)
    place.act(uuid, {"resize": {"flavorRef": "3"}})
    target = place.settled(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"]
    place.act(uuid, decision, status=status)
    server = place.settled(uuid, "VERIFY_RESIZE")
    assert "destroy shall fail" in place.last_error(uuid)
    assert place.migrations(uuid)[0]["status"] == "finished"
    assert (server["OS-EXT-SRV-ATTR:host"], server["flavor"]["original_name"]) == (target, "m1.medium")
    place.on_both(uuid, source, target)
    assert {host: copy.power for host, copy in place.copies(uuid).items()} == {source: 4, target: 1}
    assert place.used()["totalCoresUsed"] == 2


def test_a_source_that_can_not_forget_what_left_it_live_does_not_keep_it(harbour: Make) -> None:
    place = harbour()
    uuid = place.running(metadata={"fake:destroy": "fail"})
    source = place.host_of(uuid)
    place.act(uuid, {"os-migrateLive": {"host": None, "block_migration": "auto"}})
    target = place.settled(uuid, "ACTIVE")["OS-EXT-SRV-ATTR:host"]
    assert target != source
    assert set(place.held(uuid)) == {target}
    assert place.cloud.holders() == {uuid}


def test_a_host_that_lives_though_it_was_declared_dead_forgets_what_was_deleted(harbour: Make) -> None:
    place = harbour(hosts=1)
    uuid = place.running()
    place.die("fake-1")
    place.cloud.delete(uuid)
    place.nothing_left(uuid)


def test_a_destination_that_lives_though_it_was_declared_dead_forgets_what_went_back(harbour: Make) -> None:
    place = harbour()
    uuid = place.running()
    source = place.host_of(uuid)
    place.act(uuid, {"migrate": None})
    place.die(place.settled(uuid, "VERIFY_RESIZE")["OS-EXT-SRV-ATTR:host"])
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    assert place.only_on(uuid, source).power == 1


@pytest.mark.parametrize(
    ("body", "status", "settled"),
    [
        ({"resize": {"flavorRef": "3"}}, 202, "ACTIVE"),
        ({"os-migrateLive": {"host": None, "block_migration": "auto"}}, 202, "ACTIVE"),
        ({"evacuate": {}}, 200, "ACTIVE"),
    ],
)
def test_ports_that_can_not_be_bound_elsewhere_stay_where_they_were(
    harbour: Make, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], status: int, settled: str
) -> None:
    place = harbour()
    uuid = place.running()
    source, before, addresses = place.host_of(uuid), place.held(uuid), place.addresses(uuid)
    bind = PoolNetwork.bind

    def refuse(network: PoolNetwork, bindings: list[Binding]) -> list[list[PortRecord] | NetworkError]:
        if any(binding.host != source for binding in bindings):
            return [NetworkError("no room in the switch") for _ in bindings]
        return list(bind(network, bindings))

    monkeypatch.setattr(PoolNetwork, "bind", refuse)
    if "evacuate" in body:
        place.die(source)
    place.act(uuid, body, status=status)
    place.settled(uuid, settled)
    assert "no room in the switch" in place.last_error(uuid)
    assert (place.host_of(uuid), place.held(uuid), place.addresses(uuid)) == (source, before, addresses)
    assert place.cloud.holders() == {uuid}
    assert {host: copy.power for host, copy in place.copies(uuid).items()} == {source: 1}
    assert place.migrations(uuid)[0]["status"] == "error"
