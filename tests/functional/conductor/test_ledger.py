"""The ledger: work is done by whoever holds the lease, and by nobody else."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import operations
from moorage.ledger import agent_answers, checkpoints, leasing, queue
from moorage.ledger.agent_answers import AgentAnswer
from moorage.ledger.checkpoints import Checkpoint, Completion
from moorage.ledger.operation import FIRST_STEP
from tests.functional.conductor.ledger_rows import enqueue, lease, make_server


def later() -> datetime:
    return utcnow() + timedelta(minutes=1)


def held(database: Database, owner: str, operation_id: int) -> bool:
    return database.transact(
        lambda connection: operation_id in leasing.still_mine(connection, owner, [operation_id])
    )


def row_of(database: Database, operation_id: int) -> Any:
    with database.read() as connection:
        return connection.execute(sa.select(operations).where(operations.c.id == operation_id)).one()


def test_an_operation_has_one_holder_at_a_time(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    [taken] = lease(database, "first")
    assert (taken.id, taken.kind, taken.step, taken.data) == (
        operation_id,
        "build",
        FIRST_STEP,
        {"n": 1},
    )
    assert lease(database, "second") == []
    assert held(database, "first", operation_id)
    assert not held(database, "second", operation_id)


def test_a_lease_that_ran_out_is_taken_over_and_fences_the_first(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    lease(database, "dead", seconds=-1)
    assert [taken.id for taken in lease(database, "heir")] == [operation_id]
    assert not held(database, "dead", operation_id)


def test_what_was_saved_is_what_the_next_holder_finds(database: Database) -> None:
    enqueue(database, make_server(database))
    [operation] = lease(database, "first")
    operation.step, operation.attempt, operation.data = "bind", 3, {"host": "h"}
    database.transact(lambda connection: checkpoints.save(connection, [Checkpoint(operation, utcnow())]))
    [found] = lease(database, "second")
    assert (found.step, found.attempt, found.data) == ("bind", 3, {"host": "h"})


def test_a_result_that_comes_before_the_checkpoint_is_not_lost(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    [operation] = lease(database, "first")
    answers = [AgentAnswer(operation_id, operation.attempt, {"ok": True})]
    assert database.transact(lambda connection: agent_answers.answer(connection, answers)) == {operation_id}
    later = utcnow() + timedelta(minutes=10)
    operation.step = "spawned"
    database.transact(lambda connection: checkpoints.save(connection, [Checkpoint(operation, later)]))
    [found] = lease(database, "first")
    assert (found.step, found.result) == ("spawned", {"ok": True})


def test_a_used_result_is_gone_and_the_deadline_holds(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    [operation] = lease(database, "first")
    answers = [AgentAnswer(operation_id, operation.attempt, {"ok": False})]
    database.transact(lambda connection: agent_answers.answer(connection, answers))
    later = utcnow() + timedelta(minutes=10)
    point = Checkpoint(operation, later, used_result=True)
    database.transact(lambda connection: checkpoints.save(connection, [point]))
    assert lease(database, "first") == []
    assert row_of(database, operation_id).result is None


def test_a_result_of_an_earlier_attempt_is_stale(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    answers = [AgentAnswer(operation_id, 7, {"ok": True})]
    assert database.transact(lambda connection: agent_answers.answer(connection, answers)) == set()


def test_a_result_is_stale_once_its_attempt_has_ended(database: Database) -> None:
    """It came while a conductor left that host: it must not pass for the next host's."""
    operation_id = enqueue(database, make_server(database))
    [operation] = lease(database, "first")
    answers = [AgentAnswer(operation_id, operation.attempt, {"ok": True})]
    assert database.transact(lambda connection: agent_answers.answer(connection, answers)) == {operation_id}
    operation.attempt += 1
    later = utcnow() + timedelta(minutes=10)
    database.transact(lambda connection: checkpoints.save(connection, [Checkpoint(operation, later)]))
    assert lease(database, "first") == []
    assert row_of(database, operation_id).result is None


def test_a_lease_that_is_renewed_does_not_run_out(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    lease(database, "slow", seconds=-1)
    database.transact(lambda connection: leasing.renew(connection, "slow", [operation_id], later()))
    assert lease(database, "other") == []
    assert held(database, "slow", operation_id)


def test_who_was_overtaken_can_renew_nothing(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    lease(database, "slow", seconds=-1)
    lease(database, "heir", seconds=-1)
    database.transact(lambda connection: leasing.renew(connection, "slow", [operation_id], later()))
    assert [taken.id for taken in lease(database, "third")] == [operation_id]


def test_whoever_goes_on_knows_that_somebody_was_at_it(database: Database) -> None:
    enqueue(database, make_server(database))
    [first] = lease(database, "dead", seconds=-1)
    [second] = lease(database, "heir")
    assert (first.resumed, second.resumed) == (False, True)
    database.transact(leasing.forget_leases)
    [third] = lease(database, "after a restart")
    assert third.resumed
    database.transact(lambda connection: checkpoints.save(connection, [Checkpoint(third, utcnow())]))
    [fourth] = lease(database, "next")
    assert not fourth.resumed


def test_after_a_restart_nobody_waits_for_what_was_asked_before_it(database: Database) -> None:
    waiting, resting = (enqueue(database, make_server(database)) for _ in range(2))
    with database.write() as connection:
        statement = sa.update(operations).values(due_at=later())
        connection.execute(statement.where(operations.c.id == waiting).values(step="destroyed"))
        connection.execute(statement.where(operations.c.id == resting))
    database.transact(leasing.forget_leases)
    assert [operation.id for operation in lease(database, "after a restart")] == [waiting]


def test_attempts_grow_across_the_operations_of_a_server(database: Database) -> None:
    server_id = make_server(database)
    first = row_of(database, enqueue(database, server_id)).attempt
    second = row_of(database, enqueue(database, server_id, "delete")).attempt
    assert second > first


@pytest.mark.parametrize("outcome", ["done", "failed", "cancelled"])
def test_secrets_are_there_until_the_operation_ends_however_it_does(database: Database, outcome: str) -> None:
    server_id, secrets = make_server(database), {"admin_password": "let me in"}
    operation_id = database.transact(
        lambda connection: queue.enqueue(connection, server_id, "build", {}, secrets=secrets)
    )
    [operation] = lease(database, "first")
    assert operation.secrets == secrets
    assert "let me in" not in repr(operation)
    point = Checkpoint(operation, later(), used_result=True)
    database.transact(lambda connection: checkpoints.save(connection, [point]))
    assert row_of(database, operation_id).secrets == secrets, "a checkpoint in between keeps them"

    def end(connection: sa.Connection) -> None:
        if outcome == "cancelled":
            queue.cancel(connection, server_id)
        else:
            checkpoints.finish(connection, [Completion(operation, outcome)])

    database.transact(end)
    assert row_of(database, operation_id).secrets is None


def test_cancelling_fences_the_holder_but_shows_that_it_may_be_at_work(database: Database) -> None:
    server_id = make_server(database)
    operation_id = enqueue(database, server_id)
    lease(database, "first")
    database.transact(lambda connection: queue.cancel(connection, server_id))
    assert not held(database, "first", operation_id)
    with database.read() as connection:
        assert queue.under_way(connection, [server_id]) == {server_id}
    database.transact(lambda connection: leasing.drop_leases(connection, "first", [operation_id]))
    with database.read() as connection:
        assert queue.under_way(connection, [server_id]) == set()


def test_a_finished_operation_is_never_due_again(database: Database) -> None:
    operation_id = enqueue(database, make_server(database))
    [operation] = lease(database, "first")
    database.transact(lambda connection: checkpoints.finish(connection, [Completion(operation, "done")]))
    assert lease(database, "second") == []
    assert row_of(database, operation_id).outcome == "done"


def test_what_is_due_is_what_can_be_leased(database: Database) -> None:
    due = leasing.DueCheck(database, ["build"])
    assert not due.any()
    operation_id = enqueue(database, make_server(database))
    assert due.any()
    lease(database, "first", seconds=60)
    assert not due.any(), "somebody is at it"
    values: list[tuple[dict[str, Any], bool]] = [
        ({"leased_until": utcnow() - timedelta(seconds=1)}, True),
        ({"leased_until": None, "due_at": later()}, False),
        ({"due_at": utcnow() - timedelta(seconds=1)}, True),
        ({"finished_at": utcnow()}, False),
    ]
    for changed, expected in values:
        with database.write() as connection:
            connection.execute(sa.update(operations).where(operations.c.id == operation_id).values(**changed))
        assert due.any() == expected, changed
        assert bool(lease(database, "second")) == expected, changed
