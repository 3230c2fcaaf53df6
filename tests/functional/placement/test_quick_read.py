"""What claims change is taken over by a quick read, and equals what a new process reads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core import config, uuids
from moorage.db import migrate
from moorage.db.options import OPTIONS as DATABASE_OPTIONS
from moorage.placement.claims import Claim
from moorage.placement.fleet.fleet import Fleet
from moorage.placement.options import OPTIONS as PLACEMENT_OPTIONS
from moorage.placement.service import PlacementService
from moorage.placement.store import inventories, names, providers
from moorage.placement.store.inventories import Inventory

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")


@pytest.fixture
def service(database_url: str) -> Iterator[PlacementService]:
    service = a_service(database_url)
    migrate.sync(service.database.engine)
    service.database.transact(names.ensure_standard)
    yield service  # not started: its housekeeping would read the feed before the test does
    service.stop()


def a_service(url: str) -> PlacementService:
    conf = config.read([], [DATABASE_OPTIONS, PLACEMENT_OPTIONS], {"database.connection": url})
    return PlacementService.from_conf(conf)


def make_node(service: PlacementService, *classes: str) -> str:
    uuid = uuids.generate()
    service.database.transact(lambda connection: providers.create(connection, uuid, f"node-{uuid}", None))
    set_inventories(service, uuid, *classes)
    return uuid


def set_inventories(service: PlacementService, uuid: str, *classes: str) -> None:
    wanted = {name: Inventory(1000) for name in classes}
    service.database.transact(
        lambda connection: inventories.replace(connection, providers.lock(connection, uuid), wanted)
    )


def claim(service: PlacementService, consumer: str, amounts: dict[str, dict[str, int]]) -> None:
    service.claims.submit([Claim(consumer, "project", "user", amounts)])


def contents(fleet: Fleet) -> dict[str, tuple[Any, ...]]:
    return {
        uuid: (
            fleet.generations[slot],
            pytest.approx(fleet.updated_at[slot]),
            {fleet.names.class_name(class_id): each for class_id, each in fleet.inventory(slot).items()},
        )
        for uuid in fleet.uuids
        if (slot := fleet.slot_of_uuid(uuid)) is not None
    }


def assert_true(service: PlacementService, url: str) -> None:
    """The picture is what somebody sees who looks for the first time."""
    stranger = a_service(url)
    try:
        with service.picture() as (fleet, _), stranger.picture() as (fresh, _):
            assert contents(fleet) == contents(fresh)
    finally:
        stranger.stop()


@contextmanager
def quick_reads(service: PlacementService) -> Iterator[list[str]]:
    """The statements that the ordinary way to read was needed for."""
    seen: list[str] = []

    def before(_connection: sa.Connection, _cursor: Any, statement: str, *_more: Any) -> None:
        seen.append(statement)

    sa.event.listen(service.database.engine, "before_cursor_execute", before)
    yield seen
    sa.event.remove(service.database.engine, "before_cursor_execute", before)


def test_claims_and_releases_need_no_other_question(service: PlacementService, database_url: str) -> None:
    nodes = [make_node(service, *CLASSES) for _ in range(3)]
    assert_true(service, database_url)
    consumer = uuids.generate()
    claim(service, consumer, {node: {"VCPU": 2, "MEMORY_MB": 512} for node in nodes})
    claim(service, uuids.generate(), {nodes[0]: {"DISK_GB": 1}})
    with quick_reads(service) as asked, service.picture() as (fleet, _):
        assert fleet.inventory(fleet.slot_of_uuid(nodes[0]) or 0).values()
    assert asked == []
    assert_true(service, database_url)
    claim(service, consumer, {})
    with quick_reads(service) as asked, service.picture():
        pass
    assert asked == []
    assert_true(service, database_url)


def test_more_than_a_quick_read_can_hold(service: PlacementService, database_url: str) -> None:
    nodes = [make_node(service, "VCPU") for _ in range(5)]
    assert_true(service, database_url)
    requests = [
        [Claim(uuids.generate(), "project", "user", {nodes[number % 5]: {"VCPU": 1}})]
        for number in range(300)
    ]
    for start in range(0, 300, 10):
        assert service.claims.submit_many(requests[start : start + 10]) == [None] * 10
    assert_true(service, database_url)


def test_in_any_order_with_other_changes(service: PlacementService, database_url: str) -> None:
    chance = random.Random(20261116)
    nodes = [make_node(service, *CLASSES) for _ in range(4)]
    held: dict[str, str] = {}
    for _ in range(60):
        for _ in range(chance.randint(1, 3)):
            match chance.choice(("claim", "claim", "claim", "release", "arrive", "grow", "leave")):
                case "claim":
                    consumer, node = uuids.generate(), chance.choice(nodes)
                    claim(service, consumer, {node: {"VCPU": chance.randint(1, 3)}})
                    held[consumer] = node
                case "release" if held:
                    claim(service, held.popitem()[0], {})
                case "arrive":
                    nodes.append(make_node(service, *CLASSES[: chance.randint(1, 3)]))
                case "grow":
                    set_inventories(service, chance.choice(nodes), *CLASSES)
                case "leave":
                    leave(service, nodes, set(held.values()))
        if chance.random() < 0.5:
            assert_true(service, database_url)
    assert_true(service, database_url)


def leave(service: PlacementService, nodes: list[str], used: set[str]) -> None:
    """A node without claims goes, if there is one to spare."""
    idle = [node for node in nodes if node not in used]
    if idle and len(nodes) > 1:
        nodes.remove(idle[0])
        service.database.transact(lambda connection: providers.delete(connection, idle[0]))


def test_a_server_in_another_time_zone(postgres_url: str) -> None:
    service = a_service(postgres_url)
    migrate.sync(service.database.engine)
    service.database.transact(names.ensure_standard)
    name = service.database.engine.url.database
    with service.database.read() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET timezone = "Asia/Kolkata"')
    service.database.engine.dispose()
    node = make_node(service, "VCPU")
    assert_true(service, postgres_url)
    claim(service, uuids.generate(), {node: {"VCPU": 1}})
    assert_true(service, postgres_url)
    service.stop()
