"""Resize and cold migration: a server moves, and everything that it has goes with it or stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.functional.conductor.conftest import Yard
from tests.functional.conductor.harbour import Harbour

Make = Callable[..., Harbour]


@pytest.fixture
def harbour(yard: Callable[..., Yard], tmp_path: Path) -> Iterator[Make]:
    def make(hosts: int = 2, **options: object) -> Harbour:
        return Harbour(yard(hosts=hosts, **{"fake.vcpus": 8, **options}), tmp_path)

    yield make


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
