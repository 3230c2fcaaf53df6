"""A conductor stalls before any of its calls to Placement, its successor ends the move, then it wakes up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.functional.conductor.conftest import Yard
from tests.functional.conductor.harbour import Harbour
from tests.functional.conductor.stall import Stall, lose_leases
from tests.support.processes import wait_until

_MOST_CALLS = 40
_LATE = "conductor-0"


class Quay(Harbour):
    """Its one conductor has one thread, which may stall."""

    def __init__(self, cloud: Yard, directory: Path) -> None:
        super().__init__(cloud, directory)
        self.stall = Stall()
        self.runner = cloud.cloud._conductor.runner
        cloud.asked._inner = self.stall.watch(cloud.asked._inner)

    def end_the_move(self) -> None:
        """As a successor does; agents answer meanwhile."""
        lose_leases(self.runner, self.cloud.placement.database)
        until = time.monotonic() + 20
        while not self.cloud.is_at_rest():
            assert time.monotonic() < until, "the successor does not come to an end"
            if not self.runner.run_once("successor"):
                time.sleep(0.01)

    def await_late(self) -> None:
        """Until the one that stalled has done all that it had in mind."""
        self.cloud.await_rest()
        wait_until(lambda: not self.runner._leases._held, "the conductor to be done", 20)


@pytest.fixture
def quay(sqlite_url: str, tmp_path: Path) -> Iterator[Quay]:
    options: dict[str, Any] = {"fake.vcpus": 8, "conductor.threads": 1}
    yard = Yard(sqlite_url, tmp_path / "agents", 3, **options)
    yield Quay(yard, tmp_path)
    yard.stop()


@pytest.fixture
def berth(sqlite_url: str, tmp_path: Path) -> Iterator[Quay]:
    """Its only host keeps servers that are resized."""
    options: dict[str, Any] = {"fake.vcpus": 8, "conductor.threads": 1}
    options["compute.allow_resize_to_same_host"] = True
    yard = Yard(sqlite_url, tmp_path / "agents", 1, **options)
    yield Quay(yard, tmp_path)
    yard.stop()


LIVE = {"os-migrateLive": {"host": None, "block_migration": "auto"}}


@pytest.mark.parametrize(
    ("metadata", "asked", "calls"),
    [
        ({}, LIVE, 5),
        ({"fake:take_over": "fail"}, {"migrate": None}, 6),
    ],
    ids=["it arrives", "it goes back"],
)
def test_who_wakes_up_late_changes_nothing(
    quay: Quay, metadata: dict[str, str], asked: dict[str, Any], calls: int
) -> None:
    uuid = quay.running(metadata=metadata)
    for number in count(1):
        assert number < _MOST_CALLS
        quay.stall.come(number, quay.end_the_move, _LATE)
        quay.act(uuid, asked)
        quay.await_late()
        quay.settled(uuid, "ACTIVE")
        quay.only_on(uuid, quay.host_of(uuid))
        if not quay.stall.came:
            assert number > calls
            return


@pytest.mark.parametrize(("then", "calls"), [("confirmResize", 4), ("revertResize", 5)])
def test_who_wakes_up_late_in_a_resize_in_place_changes_nothing(berth: Quay, then: str, calls: int) -> None:
    """Both flavors are of one host: a late claim could take from the one what the other gave up."""
    uuid = berth.running()
    host, flavor = berth.host_of(uuid), "1"
    for number in count(1):
        assert number < _MOST_CALLS
        berth.stall.come(number, berth.end_the_move, _LATE)
        other = "2" if flavor == "1" else "1"
        berth.act(uuid, {"resize": {"flavorRef": other}})
        berth.await_late()
        berth.settled(uuid, "VERIFY_RESIZE")
        berth.act(uuid, {then: None}, status=204 if then == "confirmResize" else 202)
        berth.await_late()
        berth.settled(uuid, "ACTIVE")
        flavor = other if then == "confirmResize" else flavor
        assert berth.only_on(uuid, host).flavor == flavor
        assert berth.held(uuid)[host]["MEMORY_MB"] == (512 if flavor == "1" else 2048)
        if not berth.stall.came:
            assert number > calls
            return


def test_who_drops_a_claim_late_drops_no_newer_one(quay: Quay) -> None:
    """The server is offloaded and unshelved by others meanwhile."""
    uuid = quay.running()

    def come_back() -> None:
        quay.end_the_move()
        quay.act(uuid, {"unshelve": None})
        quay.end_the_move()

    for number in count(1):
        assert number < _MOST_CALLS
        quay.stall.come(number, come_back, _LATE)
        quay.act(uuid, {"shelve": None})
        quay.await_late()
        if not quay.stall.came:
            assert number > 3
            return
        quay.settled(uuid, "ACTIVE")
        quay.only_on(uuid, quay.host_of(uuid))


def test_a_server_that_is_deleted_meanwhile_leaves_nothing(quay: Quay) -> None:
    for number in count(1):
        assert number < _MOST_CALLS
        uuid = quay.running()

        def delete(uuid: str = uuid) -> None:
            quay.cloud.delete(uuid)
            quay.end_the_move()

        quay.stall.come(number, delete, _LATE)
        quay.act(uuid, LIVE)
        quay.await_late()
        if not quay.stall.came:
            assert number > 5
            return
        quay.nothing_left(uuid)
