"""Two conductors at the same work, one of them late or dead: what the other one has done stays right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
import sqlalchemy as sa
from prometheus_client import REGISTRY

from moorage.bus.contract import DISCARD
from moorage.core.clock import utcnow
from moorage.db.tables.compute import services
from moorage.ledger import held_leases, queue
from moorage.placement.client.contract import PlacementUnavailableError
from tests.functional.conductor.stand import Stand
from tests.support.processes import wait_until


@pytest.fixture
def stand(database_url: str) -> Iterator[Stand]:
    made = Stand(database_url)
    yield made
    made.close()


def test_a_claim_that_a_dead_conductor_left_is_not_in_the_servers_own_way(stand: Stand) -> None:
    """It took the last room there was; counted against the server, it would fail for lack of room."""
    stand.fill(stand.nodes[0])
    stand.claim_elsewhere()
    stand.set_operation(step="schedule", lease="dead", leased_until=utcnow() - timedelta(seconds=1))
    stand.work("heir")
    assert stand.node() == stand.nodes[1]
    assert stand.held() == {stand.nodes[1]}


def test_who_lost_its_lease_leaves_alone_what_its_successor_claimed(stand: Stand) -> None:
    stand.placement.after_claim = lambda: stand.set_operation(lease="successor")
    before = REGISTRY.get_sample_value("moorage_conductor_fenced_total")
    assert before is not None
    stand.work("late")
    assert REGISTRY.get_sample_value("moorage_conductor_fenced_total") == before + 1
    assert stand.operation().lease == "successor"
    assert len(stand.held()) == 1


def test_who_comes_too_late_takes_back_what_it_claimed(stand: Stand) -> None:
    """Its successor found no host, and has given up."""
    over = {"lease": None, "leased_until": None, "finished_at": utcnow(), "outcome": "failed"}
    stand.placement.after_claim = lambda: stand.set_operation(**over)
    stand.work("late")
    assert stand.held() != set()
    stand.work("whoever comes first")
    assert stand.held() == set()


def test_who_stalled_takes_nothing_away(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease ran out in the middle of a step: what the server holds may be its successor's by now."""
    stand.work("one")
    stand.set_operation(step="reschedule", due_at=utcnow())
    before, given_out = stand.held(), stand.addresses()
    monkeypatch.setattr(held_leases, "utcnow", lambda: utcnow() + timedelta(hours=1))
    stand.work("late")
    assert stand.held() == before != set()
    assert stand.addresses() == given_out != set()
    monkeypatch.undo()
    stand.set_operation(due_at=utcnow(), leased_until=None)
    stand.work("in time")
    assert stand.held() != before


def test_who_was_cancelled_takes_back_what_it_claimed(stand: Stand) -> None:
    stand.placement.after_claim = lambda: stand.database.transact(
        lambda connection: queue.cancel(connection, stand.server_id)
    )
    stand.work("late")
    assert {operation.lease for operation in stand.operations()} == {None}
    stand.work("whoever comes first")
    assert stand.held() == set()


def test_what_came_too_late_is_given_back_once_placement_answers(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.placement.after_claim = lambda: stand.database.transact(
        lambda connection: queue.cancel(connection, stand.server_id)
    )
    stand.work("late")

    def away(uuids: Sequence[str]) -> None:
        raise PlacementUnavailableError("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(stand.placement, "release", away)
        stand.work("one")
    assert stand.held() != set()
    stand.set_operation(due_at=utcnow())
    stand.work("another one")
    assert stand.held() == set()


def test_a_delete_that_waits_for_a_lease_gives_back_itself(stand: Stand) -> None:
    stand.placement.after_claim = stand.delete
    stand.work("one")
    assert [operation.kind for operation in stand.operations()] == ["build", "delete"]
    stand.work("one")
    assert stand.held() == set()


def test_a_claim_in_dispute_is_only_replaced_under_a_new_lease(stand: Stand) -> None:
    """The one who meets it can't know whether it is late itself."""
    stand.set_operation(step="schedule")
    stand.claim_elsewhere()
    stand.work("one")
    assert stand.held() == {stand.nodes[1]}
    assert (stand.operation().step, stand.operation().tries, stand.node()) == ("schedule", 1, None)
    stand.set_operation(due_at=utcnow())
    stand.work("one")
    assert stand.held() == {stand.node()}


def test_a_host_that_a_build_leaves_is_told_to_keep_nothing_of_it(stand: Stand) -> None:
    stand.work("one")
    assert stand.operation().step == "spawned"
    with stand.database.write() as connection:
        long_ago = utcnow() - timedelta(hours=1)
        connection.execute(sa.update(services).values(seen_at=long_ago))
    stand.set_operation(due_at=utcnow())
    stand.work("one")
    wait_until(lambda: len(stand.tasks) > 1, "the tasks, which the bus brings")
    kinds = [(task.kind, task.attempt) for task in stand.tasks if task.server_uuid == stand.uuid]
    assert kinds == [("spawn", 1), (DISCARD, 1)]
