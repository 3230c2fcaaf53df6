"""A cancel that meets a conductor at work, dying, or late: it is heeded, once, and nothing is left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from moorage.bus.contract import DISCARD
from moorage.compute.errors import ConflictError
from moorage.compute.operations import steering
from moorage.compute.operations.standing import Onlooker
from moorage.conductor.operations.register import DECLARED
from moorage.core.clock import utcnow
from moorage.placement.client.contract import ConsumerClaim, PlacementRefusedError
from tests.functional.conductor.stand import Stand
from tests.support.processes import wait_until

ONLOOKER = Onlooker(DECLARED)
REASON = "An administrator cancelled it: enough"


@pytest.fixture
def stand(database_url: str) -> Iterator[Stand]:
    made = Stand(database_url)
    yield made
    made.close()


def cancel(stand: Stand) -> None:
    operation_id = stand.operations()[-1].id
    stand.database.transact(lambda connection: steering.cancel(connection, ONLOOKER, operation_id, REASON))


def is_given_up(stand: Stand) -> bool:
    """The build has failed for the reason given, and nothing of it is left."""
    build, server = stand.operations()[0], stand.server()
    assert (build.outcome, build.error) == ("failed", REASON)
    assert (server.vm_state, server.task_state, server.host) == ("error", None, None)
    assert server.fault["message"] == REASON
    return not stand.held() and not stand.addresses()


def test_a_conductor_that_is_at_it_heeds_the_cancel_at_its_checkpoint(stand: Stand) -> None:
    stand.placement.after_claim = lambda: cancel(stand)
    stand.work("one")
    assert is_given_up(stand)
    assert [task.kind for task in stand.tasks if task.kind != DISCARD] == []


def test_a_cancel_outlives_the_conductor_that_was_at_it(stand: Stand) -> None:
    """It dies between its claim and its checkpoint: nobody has written down what it claimed."""

    def die() -> None:
        cancel(stand)
        raise KeyboardInterrupt

    stand.placement.after_claim = die
    with pytest.raises(KeyboardInterrupt):
        stand.work("dying")
    assert stand.held() != set()
    stand.placement.after_claim = None
    stand.set_operation(leased_until=utcnow() - timedelta(seconds=1))
    stand.work("heir")
    assert is_given_up(stand)


def test_what_a_frozen_conductor_claims_after_a_cancel_is_given_back(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = stand.placement.claim

    def late(claims: Sequence[ConsumerClaim]) -> list[PlacementRefusedError | None]:
        monkeypatch.undo()
        cancel(stand)
        stand.set_operation(leased_until=utcnow() - timedelta(seconds=1))
        stand.work("heir")
        assert is_given_up(stand)
        return claim(claims)

    monkeypatch.setattr(stand.placement, "claim", late)
    stand.work("frozen")
    stand.work("whoever comes first")
    assert is_given_up(stand)


def test_a_host_that_is_at_the_server_is_told_to_discard_it(stand: Stand) -> None:
    stand.work("one")
    assert stand.operation().step == "spawned"
    cancel(stand)
    stand.work("one")
    assert is_given_up(stand)
    wait_until(lambda: [task.kind for task in stand.tasks] == ["spawn", DISCARD], "the host to hear of it")


def test_what_would_wait_is_looked_at_at_once_if_it_was_cancelled_meanwhile(stand: Stand) -> None:
    """The checkpoint after which it would wait for its host for half a minute."""
    stand.work("one")
    stand.set_operation(step="spawn", due_at=utcnow(), cancel_reason=None)
    before = stand.operation().due_at
    send = stand.runner._kinds["build"].run

    def sent(step: str, batch: Sequence[object]) -> None:
        send(step, batch)  # type: ignore[arg-type]
        if step == "spawn":
            cancel(stand)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stand.runner._kinds["build"], "run", sent)
        stand.work("one")
    assert stand.operation().step == "spawned"
    assert before <= stand.operation().due_at <= utcnow()
    stand.work("one")
    assert is_given_up(stand)


def test_a_delete_can_only_be_tried_again(stand: Stand) -> None:
    stand.delete()
    with pytest.raises(ConflictError, match="gives back what the server holds"):
        cancel(stand)
    stand.work("one")
    assert [operation.outcome for operation in stand.operations()] == ["cancelled", "done"]


def test_what_has_ended_is_neither_cancelled_nor_tried(stand: Stand) -> None:
    stand.set_operation(finished_at=utcnow(), outcome="done", due_at=None)
    with pytest.raises(ConflictError, match="has ended: done"):
        cancel(stand)
    with pytest.raises(ConflictError, match="has ended: done"):
        stand.database.transact(lambda connection: steering.retry(connection, stand.operation().id))


def test_a_retry_begins_with_all_tries_and_disturbs_nobody(stand: Stand) -> None:
    def retry() -> None:
        stand.database.transact(lambda connection: steering.retry(connection, stand.operation().id))

    later = utcnow() + timedelta(minutes=1)
    stand.set_operation(step="schedule", tries=11, due_at=later, trouble="Placement was away")
    retry()
    assert (stand.operation().tries, stand.operation().due_at <= utcnow()) == (0, True)
    stand.set_operation(lease="somebody", leased_until=later)
    with pytest.raises(ConflictError, match="somebody is at operation"):
        retry()


def test_what_is_planned_does_not_begin_before_its_time(stand: Stand) -> None:
    """As the end of a server that was deleted softly; a cancel waits for that time, too."""
    later = utcnow() + timedelta(hours=1)
    stand.set_operation(due_at=later)
    with pytest.raises(ConflictError, match="not before"):
        stand.database.transact(lambda connection: steering.retry(connection, stand.operation().id))
    cancel(stand)
    assert stand.operation().due_at == later
