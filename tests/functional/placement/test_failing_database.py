"""A database that fails for a moment: what the service knows afterwards is still the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from moorage.core import config, uuids
from moorage.db import engine, migrate
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService
from moorage.placement.store import providers


@pytest.fixture
def service(postgres_url: str) -> Iterator[PlacementService]:
    conf = config.read([], [DATABASE_OPTIONS, PLACEMENT_OPTIONS], {"database.connection": postgres_url})
    migrate.sync(engine.from_conf(conf))
    service = PlacementService.from_conf(conf)
    yield service  # not started: its housekeeping would read the feed before the test does
    service.stop()


@pytest.fixture
def faults(service: PlacementService) -> Iterator[Faults]:
    faults = Faults(service.database.engine)
    yield faults
    faults.stop()


def create(service: PlacementService, name: str) -> None:
    service.database.transact(lambda connection: providers.create(connection, uuids.generate(), name, None))


def known(service: PlacementService) -> set[str]:
    with service.picture() as (fleet, _):
        return {name for name in fleet.provider_names if name}


class Faults:
    """Cuts the connection that is about to run a statement with certain words in it."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._words = ""
        self.cuts = 0
        sa.event.listen(engine, "before_cursor_execute", self._before)

    def cut_once_at(self, words: str) -> None:
        self._words = words

    def stop(self) -> None:
        sa.event.remove(self._engine, "before_cursor_execute", self._before)

    def _before(self, connection: sa.Connection, _cursor: Any, statement: str, *_more: Any) -> None:
        if self._words and self._words in statement:
            self._words = ""
            self.cuts += 1
            self._cut(connection.connection.dbapi_connection.info.backend_pid)  # type: ignore[union-attr]

    def _cut(self, pid: int) -> None:
        url = self._engine.url
        with psycopg.connect(host=url.host, port=url.port, user=url.username, dbname="postgres") as admin:
            admin.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])


def test_changes_are_not_lost_when_reading_them_fails(service: PlacementService, faults: Faults) -> None:
    create(service, "one")
    assert known(service) == {"one"}
    create(service, "two")
    faults.cut_once_at("FROM provider_traits")  # the feed was read already, the provider was not
    with pytest.raises(sa.exc.OperationalError):
        known(service)
    assert faults.cuts == 1
    assert known(service) == {"one", "two"}
