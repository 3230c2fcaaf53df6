"""The ledger and the hosts in numbers, as they are, and not as they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from moorage.compute.operations.standing import Onlooker
from moorage.conductor.chores.ledger_watch import LedgerWatch
from moorage.conductor.operations.register import DECLARED
from moorage.core.clock import utcnow
from moorage.db.tables.compute import services
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
    stand.set_operation(finished_at=utcnow(), outcome="done", due_at=None)
    with stand.database.write() as connection:
        connection.execute(sa.update(services).values(seen_at=utcnow() - timedelta(hours=1)))
    watch.look()
    assert shown("operations", **build, state="waiting") is None
    assert shown("operations_stuck", **build, why="failing") is None
    assert shown("operations_oldest_seconds", **build) is None
    assert (shown("hosts", state="up"), shown("hosts", state="down")) == (0, 1)
