"""The ledger and the hosts in numbers, as they are, and not as they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from moorage.compute.hosts import machine_failures
from moorage.compute.operations.standing import Onlooker
from moorage.conductor.chores.ledger_watch import LedgerWatch
from moorage.conductor.operations.register import DECLARED
from moorage.core.clock import utcnow
from moorage.db.tables.compute import services
from moorage.db.tables.machines import quarantined_machines
from tests.functional.conductor.stand import Stand


@pytest.fixture
def stand(database_url: str) -> Iterator[Stand]:
    made = Stand(database_url)
    yield made
    made.close()


def shown(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"moorage_{name}", labels)


def test_what_is_under_way_stuck_and_up_is_shown_until_it_is_not(stand: Stand) -> None:
    watch = LedgerWatch(stand.database, Onlooker(DECLARED), 60)
    build = {"kind": "build", "step": "spawned"}
    stand.work("one")
    stand.set_operation(tries=4, created_at=utcnow() - timedelta(hours=1))
    watch.look()
    assert shown("operations", **build, state="waiting") == 1
    assert shown("operations_stuck", **build, why="failing") == 1
    age = shown("operations_oldest_seconds", **build)
    assert age is not None
    assert 3600 <= age < 3700
    assert (shown("hosts", state="up"), shown("hosts", state="down")) == (1, 0)
    _heard(stand, timedelta(seconds=40))
    watch.look()
    lag = shown("hosts_lag_seconds")
    assert lag is not None
    assert 40 <= lag < 60
    stand.set_operation(finished_at=utcnow(), outcome="done", due_at=None)
    _heard(stand, timedelta(hours=1))
    watch.look()
    assert shown("operations", **build, state="waiting") is None
    assert shown("operations_stuck", **build, why="failing") is None
    assert shown("operations_oldest_seconds", **build) is None
    assert (shown("hosts", state="up"), shown("hosts", state="down")) == (0, 1)
    assert shown("hosts_lag_seconds") == 0, "of those that are up"


def _heard(stand: Stand, ago: timedelta) -> None:
    """As if all hosts had been silent since then."""
    with stand.database.write() as connection:
        connection.execute(sa.update(services).values(seen_at=utcnow() - ago))


def test_what_is_due_and_what_a_conductor_has_is_told_apart(stand: Stand) -> None:
    watch = LedgerWatch(stand.database, Onlooker(DECLARED), 60)
    watch.look()
    begin = {"kind": "build", "step": "begin"}
    assert shown("operations", **begin, state="due") == 1
    stand.set_operation(lease="other", leased_until=utcnow() + timedelta(seconds=30))
    watch.look()
    assert (shown("operations", **begin, state="due"), shown("operations", **begin, state="working")) == (
        None,
        1,
    )


def test_machines_in_quarantine_are_shown_until_they_are_released(stand: Stand) -> None:
    watch = LedgerWatch(stand.database, Onlooker(DECLARED), 60)
    with stand.database.write() as connection:
        for machine in ("m-1", "m-2"):
            connection.execute(sa.insert(quarantined_machines).values(machine_uuid=machine, reason="x"))
    watch.look()
    assert shown("quarantined_machines") == 2
    with stand.database.write() as connection:
        machine_failures.release(connection, ["m-1", "m-2"])
    watch.look()
    assert shown("quarantined_machines") == 0
