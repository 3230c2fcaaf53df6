"""Servers that have to go to one certain host get there, however many others are in front of it.

Each use case is run behind far more hosts that are full or disabled than a question to Placement is answered
with. `test_targets_with_the_reference.py` runs them with the reference Placement.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.scheduler.request import MOST_TREES
from tests.functional.conductor.conftest import Make, Yard
from tests.functional.conductor.harbour import Harbour

LIMIT = 5
DECOYS = 40
OPTIONS: dict[str, object] = {
    "scheduler.candidates": LIMIT,
    "fake.vcpus": 4,
    "fake.cpu_allocation_ratio": 1.0,
}


@pytest.fixture
def crowded(sqlite_url: str, tmp_path: Path) -> Iterator[Make]:
    """Hosts of which nobody would be found among the first that Placement names."""
    made: list[Yard] = []

    def make(hosts: int = 4, **options: object) -> Harbour:
        made.append(Yard(sqlite_url, tmp_path / "agents", hosts, **{**OPTIONS, **options}))
        return Harbour(made[-1], tmp_path)

    yield make
    for one in made:
        one.stop()


@pytest.mark.parametrize(
    "where",
    [
        {"availability_zone": "nova:fake-3"},
        {"availability_zone": "nova:fake-3:fake-3"},
        {"availability_zone": "nova::fake-3"},
        {"host": "fake-3"},
        {"hypervisor_hostname": "fake-3"},
        {"host": "fake-3", "hypervisor_hostname": "fake-3"},
    ],
)
def test_a_server_is_created_on_the_host_asked_for(crowded: Make, where: dict[str, Any]) -> None:
    place = crowded(hosts=3)
    place.crowd(DECOYS)
    uuid = place.running(**where)
    assert place.trees_asked_for() == [place.node_of("fake-3")]
    place.only_on(uuid, "fake-3")


def test_a_server_is_migrated_to_the_host_asked_for(crowded: Make) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    place.crowd(DECOYS)
    place.act(uuid, {"migrate": {"host": "fake-4"}})
    place.settled(uuid, "VERIFY_RESIZE")
    assert place.trees_asked_for() == [place.node_of("fake-4")]
    place.on_both(uuid, "fake-1", "fake-4")
    place.act(uuid, {"revertResize": None})
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-1")
    place.act(uuid, {"migrate": {"host": "fake-4"}})
    place.settled(uuid, "VERIFY_RESIZE")
    place.act(uuid, {"confirmResize": None}, status=204)
    place.settled(uuid, "ACTIVE")
    place.only_on(uuid, "fake-4")


def test_a_server_is_migrated_live_to_the_host_asked_for(crowded: Make) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    place.crowd(DECOYS)
    place.act(uuid, {"os-migrateLive": {"host": "fake-4", "block_migration": "auto"}})
    place.settled(uuid, "ACTIVE")
    assert place.trees_asked_for() == [place.node_of("fake-4")]
    place.only_on(uuid, "fake-4")


def test_a_server_is_evacuated_to_the_host_asked_for(crowded: Make) -> None:
    place = crowded()
    uuid = place.running(host="fake-1")
    place.crowd(DECOYS)
    place.die("fake-1")
    place.act(uuid, {"evacuate": {"host": "fake-4"}}, status=200)
    place.settled(uuid, "SHUTOFF")
    assert place.trees_asked_for() == [place.node_of("fake-4")]
    place.only_on(uuid, "fake-4")


@pytest.mark.parametrize(
    ("body", "status", "settled"),
    [
        ({"resize": {"flavorRef": "2"}}, 202, "VERIFY_RESIZE"),
        ({"migrate": None}, 202, "VERIFY_RESIZE"),
        ({"os-migrateLive": {"host": None, "block_migration": "auto"}}, 202, "ACTIVE"),
        ({"evacuate": {}}, 200, "SHUTOFF"),
    ],
)
def test_a_host_is_found_behind_all_that_will_not_do(
    crowded: Make, body: dict[str, Any], status: int, settled: str
) -> None:
    place = crowded(hosts=2)
    uuid = place.running(host="fake-1")
    place.crowd(DECOYS)
    if "evacuate" in body:
        place.die("fake-1")
    place.act(uuid, body, status=status)
    assert place.settled(uuid, settled)["OS-EXT-SRV-ATTR:host"] == "fake-2"
    assert place.trees_asked_for() == []


def test_a_new_image_is_checked_against_the_one_host(crowded: Make) -> None:
    place = crowded(hosts=2)
    uuid = place.running(host="fake-1")
    place.crowd(DECOYS)
    before = place.held(uuid)
    place.act(uuid, {"rebuild": {"imageRef": place.add_image({"trait:HW_CPU_X86_VMX": "required"})}})
    place.settled(uuid, "ACTIVE")
    assert place.held(uuid) == before
    place.act(uuid, {"rebuild": {"imageRef": place.add_image({"trait:HW_CPU_X86_AVX512F": "required"})}})
    place.settled(uuid, "ACTIVE")
    assert "HW_CPU_X86_AVX512F" in place.last_error(uuid)
    assert place.held(uuid) == before


def test_a_target_that_is_full_down_or_disabled_is_told_with_the_reason(
    crowded: Make,
) -> None:
    place = crowded(hosts=4)
    uuid = place.running(host="fake-1")
    place.running_many(4, host="fake-2")
    place.set_service("fake-3", status="disabled")
    place.die("fake-4")
    for host, words in (("fake-2", "vcpu: needs 1, free 0 of 4"), ("fake-3", "disabled"), ("fake-4", "down")):
        place.act(uuid, {"migrate": {"host": host}})
        place.settled(uuid, "ACTIVE")
        assert place.migrations(uuid)[0]["status"] == "error"
        error = place.last_error(uuid)
        assert "No valid host was found" in error
        assert words in error.lower()
        assert place.traces(uuid)[-1]["trace"]["chosen"] is None
    assert set(place.held(uuid)) == {"fake-1"}


def test_a_new_server_is_told_why_it_can_not_have_the_host_asked_for(crowded: Make) -> None:
    place = crowded(hosts=3)
    place.running_many(4, host="fake-1")
    place.set_service("fake-2", status="disabled")
    place.die("fake-3")
    for host, words in (("fake-1", "vcpu: needs 1"), ("fake-2", "disabled"), ("fake-3", "down")):
        (server,) = place.cloud.await_status(place.cloud.boot(host=host), "ERROR")
        assert "No valid host was found" in server["fault"]["message"]
        assert words in server["fault"]["message"].lower()
        assert place.traces(server["id"])


def test_a_host_of_many_nodes_is_asked_for_a_few_of_them(crowded: Make) -> None:
    nodes_of_host = MOST_TREES + 8
    place = crowded(hosts=2, **{"fake.nodes": nodes_of_host, "fake.resource_class": "CUSTOM_METAL"})
    place.make_flavor("metal", "CUSTOM_METAL")
    first = place.running(flavorRef="metal", host="fake-2")
    trees = place.trees_asked_for()
    assert len(trees) == len(set(trees)) == MOST_TREES
    second = place.running(flavorRef="metal", host="fake-2")
    assert place.host_of(first) == place.host_of(second) == "fake-2"
    assert (
        place.cloud.server(first)["OS-EXT-SRV-ATTR:hypervisor_hostname"]
        != (place.cloud.server(second)["OS-EXT-SRV-ATTR:hypervisor_hostname"])
    )
