"""Tasks that make servers run wait for a permit, and drivers see how long it lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage.agent.executor import Executor
from moorage.agent.journal import Journal
from moorage.agent.start_permits import UNLIMITED, PermitAnswer, StartPermits
from moorage.bus.contract import DISCARD, Result, StartQuestion, Task
from moorage.drivers.contract import RUNNING, SHUT_DOWN, ServerSpec, StartNotPermittedError
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from moorage.drivers.parts import StartPermit
from tests.support.processes import wait_until

SERVER = "server-1"


class FencedDriver(FakeDriver):
    """Starts by permission only; `hold` is called after it has looked, as in a process that is stopped."""

    def __init__(self, directory: Path) -> None:
        super().__init__("host-1", FakeSettings(), directory)
        self.permits = StartPermits(lambda: None, lambda: self.now)
        self.now = 1_000.0
        self.begun = threading.Event()
        self.hold = threading.Event()
        self.hold.set()
        self.starts = 0

    def start(self, server_uuid: str, node_uuid: str) -> int:
        self.begun.set()
        assert self.hold.wait(10)
        permit = self.permits.of(server_uuid)
        if permit is None or self.now >= permit.until:
            raise StartNotPermittedError
        self.starts += 1
        return super().start(server_uuid, node_uuid)


class Stand:
    def __init__(self, directory: Path) -> None:
        self.driver = FencedDriver(directory)
        self.permits = self.driver.permits
        self.results: list[Result] = []
        self.journal = Journal(directory / "journal.sqlite")
        self.executor = Executor(
            self.driver, self.journal, self.results.extend, threads=2, permits=self.permits
        )
        self.executor.start()
        self.node = self.driver.nodes()[0].uuid
        self.driver.spawn(ServerSpec(SERVER, "s", "p", "u", self.node, {}, power_on=False))

    def order(self, kind: str = "start", attempt: int = 1, *, permit: bool = True) -> None:
        self.executor.submit([Task(attempt, SERVER, kind, attempt, self.node, {}, permit)])

    def asked(self) -> StartQuestion:
        found: list[StartQuestion] = []

        def ask() -> bool:
            question = self.permits.question()
            found.extend([] if question is None else [question])
            return bool(found)

        wait_until(ask, "the question", 5)
        return found[0]

    def grant(self, question: StartQuestion, seconds: float = 60.0) -> None:
        self.permits.learn(PermitAnswer(question.number, seconds, granted=[SERVER]))

    def refuse(self, question: StartQuestion) -> None:
        self.permits.learn(PermitAnswer(question.number, 60.0, refused=[SERVER]))

    def await_rest(self) -> None:
        wait_until(lambda: not self.executor.busy(), "the task to end", 5)

    def await_results(self, *wanted: bool) -> None:
        wait_until(lambda: [result.ok for result in self.results] == list(wanted), "the results", 5)

    @property
    def power(self) -> int:
        return self.driver.power(SERVER, self.node)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    yield made
    made.permits.close()
    made.driver.close()
    made.executor.stop()
    made.journal.close()


def test_a_task_waits_for_its_permit(stand: Stand) -> None:
    stand.order()
    question = stand.asked()
    assert [(one.server_uuid, one.operation_id, one.attempt) for one in question.starts] == [(SERVER, 1, 1)]
    time.sleep(0.1)
    assert not stand.driver.begun.is_set()
    stand.grant(question)
    stand.await_rest()
    assert stand.power == RUNNING
    stand.await_results(True)
    assert stand.permits.of(SERVER) is None, "no task makes it run any more"


def test_a_permit_counts_from_when_it_was_asked_for(stand: Stand) -> None:
    stand.driver.hold.clear()
    stand.order()
    question = stand.asked()
    stand.driver.now += 20
    stand.grant(question)
    assert stand.driver.begun.wait(5)
    assert stand.permits.of(SERVER) == StartPermit(1_000.0, 1_054.0)
    stand.driver.hold.set()
    stand.await_rest()


def test_what_is_not_wanted_any_more_is_dropped(stand: Stand) -> None:
    stand.order()
    stand.refuse(stand.asked())
    stand.await_rest()
    assert (stand.power, stand.results, stand.driver.starts) == (SHUT_DOWN, [], 0)
    assert stand.journal.unfinished() == []


def test_a_task_that_was_frozen_in_a_call_asks_again_and_is_dropped(stand: Stand) -> None:
    """Meanwhile its server was evacuated."""
    stand.driver.hold.clear()
    stand.order()
    stand.grant(stand.asked())
    assert stand.driver.begun.wait(5)
    stand.driver.now += 600
    stand.driver.hold.set()
    stand.refuse(stand.asked())
    stand.await_rest()
    assert (stand.power, stand.results, stand.driver.starts) == (SHUT_DOWN, [], 0)


def test_one_that_is_still_wanted_goes_on(stand: Stand) -> None:
    stand.driver.hold.clear()
    stand.order()
    first = stand.asked()
    stand.grant(first)
    assert stand.driver.begun.wait(5)
    stand.driver.now += 600
    stand.driver.hold.set()
    second = stand.asked()
    stand.permits.learn(PermitAnswer(first.number, 6_000.0, granted=[SERVER]))  # it came twice
    assert stand.permits.of(SERVER) is None
    stand.grant(second)
    stand.await_rest()
    assert (stand.power, stand.driver.starts) == (RUNNING, 1)


def test_one_that_never_gets_there_in_time_fails(stand: Stand) -> None:
    stand.order()

    def ask() -> bool:
        question = stand.permits.question()
        if question is not None:
            stand.grant(question, seconds=0.0)
        return not stand.executor.busy()

    wait_until(ask, "the end", 20)
    stand.await_results(False)


def test_a_removal_does_not_wait_for_who_waits(stand: Stand) -> None:
    stand.order()
    stand.asked()
    stand.order(DISCARD, attempt=2)
    stand.await_rest()
    assert stand.driver.servers() == {}
    assert stand.driver.starts == 0


def test_what_makes_nothing_run_asks_nobody(stand: Stand) -> None:
    stand.order("stop")
    stand.await_rest()
    stand.await_results(True)
    assert stand.permits.question() is None


def test_conductors_that_know_of_no_permits_are_not_asked(stand: Stand) -> None:
    stand.driver.hold.clear()
    stand.order(permit=False)
    assert stand.driver.begun.wait(5)
    assert stand.permits.of(SERVER) == UNLIMITED
    stand.driver.hold.set()
    stand.await_rest()
    assert stand.power == RUNNING


def test_an_agent_that_ends_meanwhile_goes_on_after_its_next_start(stand: Stand) -> None:
    stand.order()
    stand.asked()
    stand.permits.close()
    stand.await_rest()
    assert [task.kind for task in stand.journal.unfinished()] == ["start"]
