"""A Placement service that agents report to, and the way to make it unreachable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from moorage.core import config
from moorage.db import engine, migrate
from moorage.db.database import Database
from moorage.placement.client.contract import PlacementUnavailableError, ReportedProvider
from moorage.placement.client.local import LocalPlacement
from moorage.placement.options import OPTIONS
from moorage.placement.service import PlacementService, PlacementSettings


class Placement(LocalPlacement):
    """The real one, with a cable that can be pulled and a count of what came through it."""

    def __init__(self, service: PlacementService) -> None:
        super().__init__(service)
        self.service = service
        self.unplugged = False
        self.reported: list[int] = []

    def report(self, providers: Sequence[ReportedProvider]) -> None:
        if self.unplugged:
            raise PlacementUnavailableError("unplugged")
        super().report(providers)
        self.reported.append(len(providers))

    def traits(self, uuid: str) -> set[str]:
        with self.service.picture() as picture:
            fleet = picture.fleet
            slot = fleet.slot_of_uuid(uuid)
            assert slot is not None
            return {fleet.names.trait_name(trait_id) for trait_id in fleet.traits_of[slot]}

    def providers(self) -> set[str]:
        with self.service.picture() as picture:
            return set(picture.fleet.uuids) - {""}


@pytest.fixture
def placement(tmp_path: Path) -> Iterator[Placement]:
    connected = engine.connect(f"sqlite:///{tmp_path / 'placement.sqlite'}")
    migrate.sync(connected)
    service = PlacementService(Database(connected), PlacementSettings.from_conf(config.read([], [OPTIONS])))
    service.start()
    yield Placement(service)
    service.stop()
