"""Changes that a process reads together, or too late: its picture is still the one of a fresh load."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from moorage.db.database import Database
from moorage.db.tables.placement import changes, providers
from moorage.placement import feed
from moorage.placement.service import LOAD_SECONDS
from moorage.placement.store import providers as store
from moorage.placement.store.inventories import Inventory
from tests.functional.placement.changing_fleet import NAMES, UUIDS, ChangingFleet

STOCK = {"VCPU": Inventory(8)}


@pytest.fixture
def fleet(database_url: str) -> Iterator[ChangingFleet]:
    fleet = ChangingFleet(database_url, readers=2)
    yield fleet
    fleet.close()


def loads() -> float:
    """How often the whole fleet was read so far, by anybody."""
    (metric,) = LOAD_SECONDS.collect()
    return next(sample.value for sample in metric.samples if sample.name.endswith("_count"))


def test_another_provider_in_place_of_the_newest(fleet: ChangingFleet) -> None:
    fleet.create(UUIDS[0], NAMES[0], None)
    fleet.set_inventories(UUIDS[0], STOCK)
    fleet.compare(0)
    fleet.delete(UUIDS[0])
    fleet.create(UUIDS[1], NAMES[1], None)
    fleet.set_inventories(UUIDS[1], STOCK)
    fleet.compare(0)
    (offer,) = fleet.offers(0, "resources=VCPU:1")
    assert list(offer["allocations"]) == [UUIDS[1]]
    fleet.claim(0, offer)
    fleet.compare(0)


def test_a_tree_that_gets_another_root_while_nobody_looks(fleet: ChangingFleet) -> None:
    old, child, new, niece = UUIDS[:4]
    fleet.create(old, NAMES[0], None)
    fleet.create(child, NAMES[1], old)
    fleet.compare(0)
    fleet.create(new, NAMES[2], None)
    fleet.move(child, new)
    fleet.create(niece, NAMES[3], new)
    fleet.delete(old)
    fleet.compare(0)
    fleet.delete(niece)
    fleet.compare(0)


def test_no_id_is_given_twice(fleet: ChangingFleet) -> None:
    """Neither for one provider nor for many at once, nor to another process."""
    seen: set[int] = set()
    for number in range(4):
        if number % 2:
            fleet.create(UUIDS[number], NAMES[number], None)
        else:
            fleet.report({UUIDS[number]: NAMES[number]}, None, STOCK, set(), set())
        with fleet.database.read() as connection:
            given = connection.execute(sa.select(providers.c.id)).scalar_one()
        assert given not in seen
        seen.add(given)
        fleet.delete(UUIDS[number])
        if number == 1:
            fleet.database.engine.dispose()


def test_who_is_behind_what_was_pruned_reads_everything_anew(fleet: ChangingFleet) -> None:
    for reader in (0, 1):
        fleet.compare(reader)
    fleet.create(UUIDS[0], NAMES[0], None)
    fleet.compare(0)
    fleet.prune()
    before = loads()
    with fleet.readers[0].picture():
        assert loads() == before, "it had read all that was pruned"
    with fleet.readers[1].picture():
        assert loads() == before + 1
    with fleet.readers[1].picture():
        assert loads() == before + 1, "once is enough"
    for reader in (0, 1):
        fleet.compare(reader)


def test_pruning_twice_between_two_looks_hides_nothing(fleet: ChangingFleet) -> None:
    fleet.compare(0)
    fleet.create(UUIDS[0], NAMES[0], None)
    fleet.prune()
    fleet.prune()
    fleet.compare(0)
    fleet.create(UUIDS[1], NAMES[1], None)
    fleet.compare(0)


def test_pruning_leaves_what_is_recent(fleet: ChangingFleet) -> None:
    fleet.create(UUIDS[0], NAMES[0], None)
    before = loads()
    with fleet.readers[0].picture():
        pass
    fleet.create(UUIDS[1], NAMES[1], None)
    fleet.database.transact(lambda connection: feed.prune(connection, keep_seconds=600))
    with fleet.readers[0].picture() as (picture, _):
        assert len(picture) == 2
    assert loads() == before + 1


def test_what_commits_after_all_its_elders_were_pruned_is_not_lost(postgres_url: str) -> None:
    """A transaction that began before the reader's last look, and ends when its rows are old already."""
    fleet = ChangingFleet(postgres_url, readers=1)
    with fleet.database.write() as connection:
        store.create(connection, UUIDS[0], NAMES[0], None)
        fleet.create(UUIDS[1], NAMES[1], None)
        fleet.compare(0)
    fleet.prune()
    fleet.compare(0)
    fleet.close()


def test_a_forgotten_transaction_costs_no_fresh_load_a_pruning(postgres_url: str) -> None:
    """It may be in any database of the server, and stay open for days."""
    fleet = ChangingFleet(postgres_url, readers=1)
    with fleet.database.write() as forgotten:
        store.create(forgotten, UUIDS[0], NAMES[0], None)
        fleet.create(UUIDS[1], NAMES[1], None)
        fleet.compare(0)
        before = loads()
        for _ in range(3):
            fleet.prune()
            with fleet.readers[0].picture():
                assert loads() == before
    fleet.compare(0)
    fleet.close()


def test_a_feed_from_another_server_costs_no_fresh_load_a_question(postgres_url: str) -> None:
    """A dump that was put back there has numbers of transactions that are yet to come."""
    fleet = ChangingFleet(postgres_url, readers=1)
    fleet.create(UUIDS[0], NAMES[0], None)
    fleet.prune()
    _make_foreign(fleet.database)
    fleet.compare(0)
    before = loads()
    for _ in range(3):
        with fleet.readers[0].picture():
            assert loads() == before
    fleet.close()


def _make_foreign(database: Database) -> None:
    later = "SET xid = (xid::text::bigint + 1000000)::text::xid8, provider_id = provider_id + 1000000"
    with database.write() as connection:
        assert connection.execute(sa.text(f"UPDATE {changes.name} {later}")).rowcount == 1
