"""The runner: whatever one operation does wrong costs that one, never those that were leased with it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from moorage.bus.notifications import NoNotifications
from moorage.conductor.engine import runner
from moorage.conductor.engine.operation_notifications import OperationNotifications
from moorage.conductor.engine.runner import Runner
from moorage.conductor.engine.work import Work
from moorage.core.clock import utcnow
from moorage.db.database import Database
from moorage.db.tables.compute import operations
from moorage.ledger.declared import Step
from moorage.placement.client.contract import PlacementUnavailableError
from tests.functional.conductor.ledger_rows import enqueue, make_server

OPERATIONS = 5


class Counted(msgspec.Struct, omit_defaults=True):
    n: int = 0
    steps: int = 0


class Counting:
    """Two steps; a test says what goes wrong in the second, and for whom."""

    name = "count"
    state = Counted
    steps = (Step("begin", then=("second",)), Step("second"))
    notification = None

    def __init__(self, second: Callable[[Work[Counted]], None]) -> None:
        self._second = second
        self.gave_up: list[int] = []

    def run(self, step: str, batch: Sequence[Work[Any]]) -> None:
        for work in batch:
            work.state.steps += 1
            if step == "begin":
                work.go_on("second")
            else:
                work.finish()
                self._second(work)

    def give_up(self, work: Work[Any], error: str) -> None:
        self.gave_up.append(work.operation.id)
        work.fail(error)

    def cancel(self, work: Work[Any], reason: str) -> None:
        self.give_up(work, reason)


def run(database: Database, kind: Counting) -> None:
    Runner(database, {kind.name: kind}, OperationNotifications(NoNotifications())).run_once("me")


def rows(database: Database) -> dict[int, Any]:
    with database.read() as connection:
        return {row.id: row for row in connection.execute(sa.select(operations))}


def set_columns(database: Database, operation_id: int, **columns: Any) -> None:
    with database.write() as connection:
        connection.execute(sa.update(operations).where(operations.c.id == operation_id).values(**columns))


@pytest.fixture
def ids(database: Database) -> list[int]:
    return [enqueue(database, make_server(database), "count") for _ in range(OPERATIONS)]


def test_a_step_that_fails_for_one_is_tried_again_for_that_one_alone(
    database: Database, ids: list[int]
) -> None:
    def second(work: Work[Counted]) -> None:
        if work.operation.id == ids[2]:
            raise LookupError("no such thing")

    run(database, Counting(second))
    found = rows(database)
    assert [found[each].outcome for each in ids] == ["done", "done", None, "done", "done"]
    assert [found[each].data["steps"] for each in ids if each != ids[2]] == [2] * 4, "each step counted once"
    spoiled = found[ids[2]]
    assert (spoiled.step, spoiled.tries, spoiled.data) == ("begin", 1, {"n": 1})


def test_a_write_that_fails_for_one_is_tried_again_for_that_one_alone(
    database: Database, ids: list[int]
) -> None:
    def refuse(_connection: Connection) -> None:
        raise ValueError("it can't be written")

    def second(work: Work[Counted]) -> None:
        if work.operation.id == ids[0]:
            work.writes.append(refuse)

    run(database, Counting(second))
    found = rows(database)
    assert [found[each].outcome for each in ids] == [None, "done", "done", "done", "done"]
    assert (found[ids[0]].step, found[ids[0]].tries, found[ids[0]].data) == ("begin", 1, {"n": 1})


def test_what_failed_too_often_is_given_up(database: Database, ids: list[int]) -> None:
    set_columns(database, ids[1], tries=runner._MOST_TRIES)

    def second(work: Work[Counted]) -> None:
        if work.operation.id == ids[1]:
            raise LookupError("no such thing")

    kind = Counting(second)
    run(database, kind)
    assert kind.gave_up == [ids[1]]
    assert rows(database)[ids[1]].outcome == "failed"
    assert rows(database)[ids[1]].error == "LookupError: no such thing"


@pytest.mark.parametrize("error", [LookupError("no such thing"), PlacementUnavailableError("it is away")])
def test_a_reason_is_told_once_however_often_it_is_tried_again(
    database: Database, ids: list[int], caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """And once more at the end, as that of the operation's failure."""

    def second(work: Work[Counted]) -> None:
        raise error

    caplog.set_level(logging.INFO)
    for each in ids[1:]:
        set_columns(database, each, due_at=None)
    for _ in range(runner._MOST_TRIES + 1):
        set_columns(database, ids[0], due_at=utcnow())
        run(database, Counting(second))
    assert rows(database)[ids[0]].outcome == "failed"
    lines = [f"{record.getMessage()} {record.exc_info or ''}" for record in caplog.records]
    told = [line for line in lines if str(error) in line]
    assert [line.partition(" ")[0] for line in told] == ["step", "count"], told
    is_outage = isinstance(error, PlacementUnavailableError)
    assert ("Traceback" in caplog.text) is not is_outage, "a traceback of what nobody expected"


def test_what_can_t_even_be_given_up_keeps_nobody_else_from_ending(
    database: Database, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_columns(database, ids[4], tries=runner._MOST_TRIES)

    def second(work: Work[Counted]) -> None:
        if work.operation.id == ids[4]:
            raise LookupError("no such thing")

    def give_up(work: Work[Any], error: str) -> None:
        raise KeyError("nor this")

    kind = Counting(second)
    monkeypatch.setattr(kind, "give_up", give_up)
    run(database, kind)
    found = rows(database)
    assert [found[each].outcome for each in ids] == ["done", "done", "done", "done", None]
    assert found[ids[4]].leased_until is None
    assert found[ids[4]].due_at is not None, "it is tried again some time"


def test_a_kind_that_is_not_known_is_left_to_who_knows_it(database: Database, ids: list[int]) -> None:
    foreign = enqueue(database, make_server(database), "from_the_next_release")
    run(database, Counting(lambda work: None))
    found = rows(database)
    assert [found[each].outcome for each in ids] == ["done"] * OPERATIONS
    left = found[foreign]
    assert (left.lease, left.tries, left.outcome) == (None, 0, None)


def test_a_state_that_can_t_be_read_is_left_as_it_is(database: Database, ids: list[int]) -> None:
    set_columns(database, ids[3], data={"n": "many"})
    run(database, Counting(lambda work: None))
    found = rows(database)
    assert [found[each].outcome for each in ids] == ["done", "done", "done", None, "done"]
    assert found[ids[3]].data == {"n": "many"}
    assert found[ids[3]].leased_until is None


def test_a_step_that_is_not_declared_is_told(database: Database, ids: list[int]) -> None:
    def astray(work: Work[Counted]) -> None:
        work.outcome = None
        work.wait("begin", 60)

    before = runner.UNDECLARED.labels("count", "second", "begin")._value.get()
    run(database, Counting(astray))
    assert runner.UNDECLARED.labels("count", "second", "begin")._value.get() == before + OPERATIONS


class Climbing(Counting):
    """Each step is kept by itself; a test says what happens in the first one."""

    def run(self, step: str, batch: Sequence[Work[Any]]) -> None:
        for work in batch:
            work.state.steps += 1
            if step == "begin":
                self._second(work)
                work.advance("second")
            else:
                work.finish()


def test_one_that_stops_hands_over_what_could_go_on(database: Database, ids: list[int]) -> None:
    """The step under way is finished and kept; the next one is another conductor's to take, at once."""
    runners: list[Runner] = []
    kind = Climbing(lambda work: runners[0].stop())
    notices = OperationNotifications(NoNotifications())
    runners += [Runner(database, {kind.name: kind}, notices, threads=0) for _ in range(2)]
    stopped, other = runners
    stopped.run_once("stopped")
    found = rows(database)
    assert {(found[each].step, found[each].lease, found[each].data["steps"]) for each in ids} == {
        ("second", None, 1)
    }
    other.run_once("other")
    assert {rows(database)[each].outcome for each in ids} == {"done"}
