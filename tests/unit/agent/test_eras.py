"""An agent's tasks across a restore of the database, and beside conductors that know no eras."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from moorage.agent.journal import Journal
from moorage.bus.contract import Result, Task
from moorage.drivers.fake.driver import FakeSettings
from tests.support.processes import wait_until
from tests.unit.agent.stand import Stand


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    made = Stand(tmp_path)
    yield made
    made.end()


def of_era(task: Task, era: int) -> Task:
    return msgspec.structs.replace(task, era=era)


def test_a_task_of_a_later_era_is_done_whatever_the_numbers(stand: Stand) -> None:
    stand.do(stand.task("spawn"))
    stand.wait_for(1)
    stand.do(stand.task("stop", operation=50, attempt=9))
    wait_until(lambda: stand.driver.servers() == {"server-1": 4}, "the server to be off", 10)
    stand.wait_idle()
    stand.do(stand.task("start", operation=7, attempt=2))
    assert stand.driver.servers() == {"server-1": 4}, "within an era the numbers count"
    stand.journal.begin_era(100)
    stand.do(of_era(stand.task("start", operation=7, attempt=2), 100))
    wait_until(lambda: stand.driver.servers() == {"server-1": 1}, "the server to run", 10)


def test_a_task_of_an_earlier_era_is_ignored(stand: Stand) -> None:
    stand.do(stand.task("spawn"))
    stand.wait_for(1)
    stand.journal.begin_era(100)
    assert stand.journal.accept([of_era(stand.task("stop", operation=50), 99)]).stale == 1
    assert stand.journal.accept([of_era(stand.task("stop", operation=50), 100)]).stale == 0


def test_a_conductor_that_knows_no_eras_means_the_one_that_is(stand: Stand) -> None:
    stand.journal.begin_era(100)
    stand.do(stand.task("spawn"))
    (result,) = stand.wait_for(1)
    assert (result.ok, result.era) == (True, 100)
    stand.do(of_era(stand.task("stop", operation=2), 100))
    stand.wait_for(2)
    assert stand.journal.accept([stand.task("start", operation=1, attempt=1)]).stale == 1


def test_what_waits_for_its_turn_is_not_begun_in_the_next_era(tmp_path: Path) -> None:
    """The database that comes back may not know of it."""
    stand = Stand(tmp_path, FakeSettings(hang_seconds=1.0), threads=1)
    try:
        stand.do(stand.task("spawn", "slow", spawn="hang"))
        wait_until(lambda: stand.executor.busy() == {"slow"}, "the first task to begin", 10)
        stand.do(stand.task("spawn", "late"))
        stand.journal.begin_era(100)
        stand.wait_idle()
        assert set(stand.driver.servers()) <= {"slow"}
        assert stand.results == []
    finally:
        stand.end()


def test_the_result_of_an_earlier_era_is_nobodys(stand: Stand) -> None:
    """Not even that of a task with the same numbers, which is the restored database's."""
    old, new = stand.task("stop", operation=5), of_era(stand.task("stop", operation=5), 100)
    stand.journal.accept([old])
    stand.journal.begin_era(100)
    stand.journal.accept([new])
    stale = Result(5, "server-1", 1, ok=False, error="gone", era=1)
    assert stand.journal.finish([(of_era(old, 1), stale)]) == []
    assert stand.journal.unreported() == []
    assert stand.journal.unfinished() == [new]


def test_an_era_outlives_the_agent(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal.sqlite")
    assert first.era == 1
    first.begin_era(100)
    first.close()
    second = Journal(tmp_path / "journal.sqlite")
    assert second.era == 100
    second.close()
