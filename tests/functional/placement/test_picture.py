"""The picture of the fleet is the truth, whatever happens to the database while changes are read from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from moorage.core import config, uuids
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.placement.claims import Claim
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService
from moorage.placement.store import inventories, names, providers
from moorage.placement.store.inventories import Inventory
from moorage.placement.store.providers import Provider


@pytest.fixture
def service(postgres_url: str) -> Iterator[PlacementService]:
    conf = config.read([], [DATABASE_OPTIONS, PLACEMENT_OPTIONS], {"database.connection": postgres_url})
    service = PlacementService.from_conf(conf)
    yield service  # not started: its housekeeping would read the feed before the test does
    service.stop()


def create(service: PlacementService, name: str, parent: str | None = None) -> Provider:
    def make(connection: sa.Connection) -> Provider:
        return providers.create(connection, uuids.generate(), name, parent)

    return service.database.transact(make)


def known(service: PlacementService) -> set[str]:
    with service.picture() as (fleet, _):
        return {name for name in fleet.provider_names if name}


@contextmanager
def interrupted(
    service: PlacementService, words: str, action: Callable[[sa.Connection], object]
) -> Iterator[None]:
    """Once, before a statement with certain words in it, something else happens to the database."""
    pending = [action]

    def before(connection: sa.Connection, _cursor: Any, statement: str, *_more: Any) -> None:
        if pending and words in statement:
            pending.pop()(connection)

    sa.event.listen(service.database.engine, "before_cursor_execute", before)
    yield
    sa.event.remove(service.database.engine, "before_cursor_execute", before)
    assert not pending, "the statement never came"


def cut(connection: sa.Connection) -> None:
    """End this connection from the other side."""
    url, held = connection.engine.url, connection.connection.dbapi_connection
    with psycopg.connect(host=url.host, port=url.port, user=url.username, dbname="postgres") as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", [held.info.backend_pid])  # type: ignore[union-attr]


def test_changes_are_not_lost_when_reading_them_fails(service: PlacementService) -> None:
    create(service, "one")
    assert known(service) == {"one"}
    create(service, "two")
    # The feed was read already, the provider was not.
    with interrupted(service, "FROM provider_traits", cut), pytest.raises(sa.exc.OperationalError):
        known(service)
    assert known(service) == {"one", "two"}


def test_a_parent_that_comes_while_its_child_is_read(service: PlacementService) -> None:
    assert known(service) == set()
    child = create(service, "child")

    def adopt(_connection: sa.Connection) -> None:
        parent = create(service, "parent").uuid
        service.database.transact(
            lambda connection: providers.set_parent(
                connection, providers.lock(connection, child.uuid), parent, reparenting=True
            )
        )

    with interrupted(service, "FROM inventories", adopt):
        assert known(service) >= {"child"}
    assert known(service) == {"child", "parent"}


def test_an_inventory_that_comes_while_usage_is_read(service: PlacementService) -> None:
    service.database.transact(names.ensure_standard)
    node = create(service, "node")
    set_inventories(service, node, "VCPU")
    assert known(service) == {"node"}
    service.claims.submit([Claim(uuids.generate(), "project", "user", {node.uuid: {"VCPU": 1}})])
    create(service, "other")  # so that a quick read is not enough

    def more(_connection: sa.Connection) -> None:
        set_inventories(service, node, "VCPU", "DISK_GB")

    with interrupted(service, "LEFT OUTER JOIN inventories", more):
        assert known(service) == {"node", "other"}
    with service.picture() as (fleet, _):
        found = fleet.inventory(fleet.slot_of_uuid(node.uuid) or 0)
    assert sorted(found.values()) == [(10, 0), (10, 1)]


def set_inventories(service: PlacementService, provider: Provider, *classes: str) -> None:
    wanted = {name: Inventory(10) for name in classes}
    service.database.transact(
        lambda connection: inventories.replace(connection, providers.lock(connection, provider.uuid), wanted)
    )
