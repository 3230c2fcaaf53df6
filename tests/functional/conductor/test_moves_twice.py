"""Every step of every move is run twice, as after a conductor that died before its checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.conductor.engine import runner
from moorage.conductor.engine.runner import Runner
from moorage.conductor.engine.work import Work
from moorage.ledger import leasing
from moorage.ledger.held_leases import Lease
from tests.functional.conductor.conftest import Yard
from tests.functional.conductor.harbour import Harbour


class Deaths:
    """A conductor that dies once at the end of each step, before any of it is written down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.died: set[tuple[int, str]] = set()
        keep = Runner._keep

        def dying(conductor: Runner, lease: Lease, works: list[Work[Any]]) -> list[Work[Any]]:
            reached = {(work.operation.id, work.operation.step) for work in works}
            if reached - self.died:
                self.died |= reached
                conductor._database.transact(leasing.forget_leases)
                raise RuntimeError("the conductor dies here")
            return keep(conductor, lease, works)

        monkeypatch.setattr(Runner, "_keep", dying)
        monkeypatch.setattr(runner, "_PAUSE_SECONDS", 0.01)

    def steps(self) -> set[str]:
        return {step for _, step in self.died}


OPTIONS: dict[str, Any] = {
    "fake.vcpus": 8,
    "conductor.threads": 1,
    "conductor.ask_again_seconds": 1,
    "conductor.lease_seconds": 3,
}


@pytest.fixture
def place(sqlite_url: str, tmp_path: Path) -> Iterator[Harbour]:
    yard = Yard(sqlite_url, tmp_path / "agents", 3, **OPTIONS)
    yield Harbour(yard, tmp_path)
    yard.stop()


@pytest.fixture
def only_host(sqlite_url: str, tmp_path: Path) -> Iterator[Harbour]:
    """One host, on which servers may stay when they are resized."""
    options = {**OPTIONS, "compute.allow_resize_to_same_host": True}
    yard = Yard(sqlite_url, tmp_path / "agents", 1, **options)
    yield Harbour(yard, tmp_path)
    yard.stop()


@pytest.mark.parametrize(
    ("metadata", "asked", "settled", "steps"),
    [
        ({}, [({"migrate": None}, 202), ({"confirmResize": None}, 204)], "ACTIVE", {"take_over", "leave"}),
        (
            {},
            [({"resize": {"flavorRef": "2"}}, 202), ({"revertResize": None}, 202)],
            "ACTIVE",
            {"clean", "retreat", "restore"},
        ),
        ({"fake:take_over": "fail"}, [({"migrate": None}, 202)], "ACTIVE", {"clean", "retreat", "restore"}),
        (
            {},
            [({"os-migrateLive": {"host": None, "block_migration": "auto"}}, 202)],
            "ACTIVE",
            {"expect", "migrate", "take_over", "leave", "release"},
        ),
        ({}, [({"evacuate": {}}, 200)], "SHUTOFF", {"bind", "spawn", "release"}),
    ],
)
def test_a_step_that_runs_twice_does_what_it_does_once(
    place: Harbour,
    monkeypatch: pytest.MonkeyPatch,
    metadata: dict[str, str],
    asked: list[tuple[dict[str, Any], int]],
    settled: str,
    steps: set[str],
) -> None:
    uuid = place.running(metadata=metadata)
    if "evacuate" in asked[0][0]:
        place.die(place.host_of(uuid))
    deaths = Deaths(monkeypatch)
    for body, status in asked:
        place.act(uuid, body, status=status)
        place.cloud.await_rest()
    place.settled(uuid, settled)
    place.only_on(uuid, place.host_of(uuid))
    assert steps <= deaths.steps()
    place.cloud.delete(uuid)
    place.nothing_left(uuid)


@pytest.mark.parametrize(
    ("metadata", "then", "status", "flavor", "steps"),
    [
        ({}, "confirmResize", 204, "2", {"take_over", "leave", "release"}),
        ({}, "revertResize", 202, "1", {"take_over", "clean", "retreat", "restore"}),
        ({"fake:take_over": "fail"}, None, 0, "1", {"clean", "retreat", "restore"}),
    ],
)
def test_a_step_of_a_resize_in_place_that_runs_twice_does_what_it_does_once(
    only_host: Harbour,
    monkeypatch: pytest.MonkeyPatch,
    metadata: dict[str, str],
    then: str | None,
    status: int,
    flavor: str,
    steps: set[str],
) -> None:
    uuid = only_host.running(metadata=metadata)
    host = only_host.host_of(uuid)
    deaths = Deaths(monkeypatch)
    only_host.act(uuid, {"resize": {"flavorRef": "2"}})
    only_host.cloud.await_rest()
    if then is not None:
        only_host.settled(uuid, "VERIFY_RESIZE")
        only_host.act(uuid, {then: None}, status=status)
    only_host.settled(uuid, "ACTIVE")
    after = only_host.only_on(uuid, host)
    assert (after.flavor, after.before, after.power) == (flavor, None, 1)
    assert steps <= deaths.steps()
    only_host.cloud.delete(uuid)
    only_host.nothing_left(uuid)
