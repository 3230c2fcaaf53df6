"""Clients of Placement, each of a fresh and empty service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from moorage.core import config
from moorage.db import engine, migrate
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.placement.client.contract import PlacementClient
from moorage.placement.client.local import LocalPlacement
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService

CLIENTS = ("local_on_sqlite", "local_on_postgresql")


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> PlacementClient:
    chosen: PlacementClient = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture
def local_on_sqlite(sqlite_url: str) -> Iterator[PlacementClient]:
    yield from _local(sqlite_url)


@pytest.fixture
def local_on_postgresql(postgres_url: str) -> Iterator[PlacementClient]:
    yield from _local(postgres_url)


def _local(url: str) -> Iterator[PlacementClient]:
    conf = config.read([], [DATABASE_OPTIONS, PLACEMENT_OPTIONS], {"database.connection": url})
    migrate.sync(engine.from_conf(conf))
    service = PlacementService.from_conf(conf)
    service.start()
    yield LocalPlacement(service)
    service.stop()
