"""Tasks are done once, in order, in spite of restarts, repetition and a bus that is down."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.bus.contract import ADMIN_PASSWORD, DISCARD
from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError, NotOursError, ServerSpec
from moorage.drivers.fake.driver import FakeSettings
from tests.support.processes import wait_until
from tests.unit.agent.stand import Stand


@pytest.fixture
def stand(tmp_path: Path) -> Stand:
    return Stand(tmp_path)


def test_a_server_is_spawned_stopped_and_destroyed(stand: Stand) -> None:
    stand.do(stand.task("spawn"))
    (spawned,) = stand.wait_for(1)
    assert (spawned.ok, spawned.facts) == (True, {"power_state": RUNNING})
    stand.do(stand.task("stop", operation=2))
    assert stand.wait_for(2)[1].facts == {"power_state": SHUT_DOWN}
    stand.do(stand.task("destroy", operation=3))
    assert stand.wait_for(3)[2].ok
    assert stand.driver.servers() == {}


def test_a_task_that_comes_again_gets_the_same_answer(stand: Stand) -> None:
    failing = stand.task("spawn", spawn="fail_here")
    stand.do(failing)
    first = stand.wait_for(1)[0]
    stand.do(failing)
    assert stand.wait_for(2)[1] == first
    assert first.retry_elsewhere


def test_a_task_for_a_node_of_another_host_has_no_answer_and_may_come_again(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer would be taken for that of the host whose node it is."""
    task = stand.task("spawn")
    spawn = stand.driver.spawn

    def refuse(spec: ServerSpec) -> int:
        raise NotOursError(spec.node_uuid)

    monkeypatch.setattr(stand.driver, "spawn", refuse)
    stand.do(task)
    wait_until(lambda: not stand.journal.unfinished(), "the task to be dropped", 10)
    assert stand.results == []
    monkeypatch.setattr(stand.driver, "spawn", spawn)
    stand.do(task)
    assert stand.wait_for(1)[0].ok


def test_a_task_that_comes_again_while_it_is_done_is_done_once(stand: Stand) -> None:
    slow = stand.task("spawn", spawn="delay=0.3")
    stand.do(slow, slow)
    stand.do(slow)
    stand.wait_for(1)
    stand.wait_idle()
    time.sleep(0.05)
    assert len(stand.results) == 1


@pytest.mark.parametrize("newer", [{"operation": 2}, {"attempt": 2}])
def test_a_late_task_is_ignored(stand: Stand, newer: dict[str, Any]) -> None:
    stand.do(stand.task("destroy", **newer))
    stand.wait_for(1)
    stand.do(stand.task("spawn"))
    stand.wait_idle()
    assert stand.driver.servers() == {}
    assert len(stand.results) == 1


def test_a_spawn_does_not_come_after_the_destroy_of_the_same_attempt(stand: Stand) -> None:
    stand.do(stand.task("destroy"))
    stand.wait_for(1)
    stand.do(stand.task("spawn"))
    stand.wait_idle()
    assert stand.driver.servers() == {}


def test_a_later_attempt_may_come_back_to_this_host(stand: Stand) -> None:
    stand.do(stand.task("spawn", spawn="fail_here"))
    stand.wait_for(1)
    stand.do(stand.task("spawn", attempt=3))
    assert stand.wait_for(2)[1].ok


def test_a_destroy_that_failed_is_tried_again(stand: Stand) -> None:
    stand.do(stand.task("spawn", destroy="fail@0.5"))
    stand.wait_for(1)
    for asked in range(2, 40):
        stand.do(stand.task("destroy", operation=2))
        if stand.wait_for(asked)[-1].ok:
            break
    assert stand.driver.servers() == {}


def test_destroy_overtakes_spawns_that_hang_in_all_threads(tmp_path: Path) -> None:
    stand = Stand(tmp_path, threads=2)
    names = [f"server-{number}" for number in range(6)]  # two hang, four wait for a thread
    stand.do(*(stand.task("spawn", name, spawn="hang") for name in names))
    time.sleep(0.1)
    stand.do(*(stand.task("destroy", name, operation=2) for name in names))
    wait_until(
        lambda: len({r.server_uuid for r in stand.results if r.operation_id == 2}) == 6, "destroys", 10
    )
    stand.wait_idle()
    assert all(result.ok for result in stand.results if result.operation_id == 2)
    assert stand.driver.servers() == {}
    assert {result.operation_id for result in stand.results} == {2}  # nobody waits for the spawns any more


def test_destroy_looks_again_after_a_spawn_that_it_ran_into(stand: Stand) -> None:
    """The worst moment: the spawn has begun, but the driver has not heard of it yet."""
    begun, gate = threading.Event(), threading.Event()
    real = stand.driver.spawn

    def late(spec: ServerSpec) -> int:
        begun.set()
        gate.wait(5)
        return real(spec)

    stand.driver.spawn = late  # type: ignore[method-assign]
    stand.do(stand.task("spawn"))
    assert begun.wait(5)
    stand.do(stand.task("destroy", operation=2))
    time.sleep(0.1)
    gate.set()
    assert stand.wait_for(1)[0].operation_id == 2
    stand.wait_idle()
    assert stand.driver.servers() == {}


def test_a_discarded_server_is_gone_and_nobody_hears_of_it(stand: Stand) -> None:
    stand.do(stand.task("spawn"))
    stand.wait_for(1)
    stand.do(stand.task(DISCARD, attempt=2))
    wait_until(lambda: stand.driver.servers() == {}, "the server to go", 5)
    stand.wait_idle()
    time.sleep(0.05)
    assert len(stand.results) == 1


def test_a_server_that_is_seen_after_its_end_is_ended_again(stand: Stand) -> None:
    """By the same operation and attempt: there is nothing newer that a conductor could name."""
    stand.do(stand.task("destroy", operation=2))
    assert stand.wait_for(1)[0].ok
    stand.driver.spawn(msgspec.convert(stand.task("spawn").payload, ServerSpec))  # as a call that was delayed
    stand.do(stand.task("destroy", operation=2))
    assert stand.wait_for(2)[1].ok, "who asks again has missed the answer"
    assert list(stand.driver.servers()) == ["server-1"]
    for _ in range(2):
        stand.do(stand.task(DISCARD, operation=2))
    wait_until(lambda: stand.driver.servers() == {}, "the server to go", 5)
    stand.wait_idle()
    stand.do(stand.task("spawn", operation=3))
    assert stand.wait_for(3)[2].ok
    stand.do(stand.task(DISCARD, operation=2))
    stand.wait_idle()
    assert list(stand.driver.servers()) == ["server-1"], "it is there again rightly"


def test_why_a_server_can_not_be_discarded_is_told_once(
    stand: Stand, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def refuse(server_uuid: str, node_uuid: str) -> None:
        done.append(server_uuid)
        raise DriverError("an operator protects it")

    monkeypatch.setattr(stand.driver, "destroy", refuse)
    for times in range(1, 4):
        stand.do(stand.task(DISCARD))
        wait_until(lambda times=times: len(done) == times, "the try", 5)  # type: ignore[misc]
        stand.wait_idle()
        wait_until(lambda: not stand.journal.unfinished(), "its result", 5)
    told = [record.getMessage() for record in caplog.records if "can't be removed" in record.getMessage()]
    assert told == ["server server-1 should not be here, and can't be removed: an operator protects it"]


def test_interrupted_work_goes_on_after_a_restart(tmp_path: Path) -> None:
    first = Stand(tmp_path, FakeSettings(hang_seconds=60))
    first.do(first.task("spawn", spawn="delay=0.5"), first.task("spawn", "server-2"))
    first.wait_for(1)
    first.end()
    second = Stand(tmp_path)
    assert second.wait_for(1)[0].server_uuid == "server-1"
    assert set(second.driver.servers()) == {"server-1", "server-2"}
    second.end()


def test_what_is_secret_is_in_no_file_and_has_to_come_again_after_a_restart(tmp_path: Path) -> None:
    first = Stand(tmp_path, FakeSettings(hang_seconds=60))
    first.do(first.task("spawn", rescue="delay=0.5"))
    first.wait_for(1)
    spec = ServerSpec("server-1", "s", "p", "u", first.driver.nodes()[0].uuid, {})
    payload = {"spec": msgspec.to_builtins(spec)}
    rescue = msgspec.structs.replace(
        first.task("rescue", operation=2), payload=payload, secrets={ADMIN_PASSWORD: "let me in"}
    )
    assert "let me in" not in repr(rescue)
    first.do(rescue)
    wait_until(lambda: bool(first.executor.busy()), "the rescue", 10)
    assert first.journal.unfinished()[0].secrets == {ADMIN_PASSWORD: ""}
    first.end()
    assert not any(b"let me in" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    second = Stand(tmp_path)
    assert second.journal.unfinished() == []
    assert second.results == [], "nobody rescued it without a password"
    second.do(rescue)
    assert second.wait_for(1)[0].ok
    second.end()


def test_results_that_can_not_be_reported_are_kept_over_a_restart(tmp_path: Path) -> None:
    first = Stand(tmp_path)
    first.bus_is_down = True
    first.do(first.task("spawn"), first.task("spawn", "server-2"))
    wait_until(lambda: len(first.journal.unreported()) == 2, "the journal", 5)
    first.end()
    second = Stand(tmp_path)
    assert {result.server_uuid for result in second.wait_for(2)} == {"server-1", "server-2"}
    second.end()
    third = Stand(tmp_path)
    time.sleep(0.1)
    assert third.results == []
    third.end()


def test_results_are_reported_when_the_bus_is_back(stand: Stand) -> None:
    stand.bus_is_down = True
    stand.do(stand.task("spawn"))
    time.sleep(0.1)
    stand.do(stand.task("spawn", "server-2"))
    stand.bus_is_down = False
    assert {result.server_uuid for result in stand.wait_for(2)} == {"server-1", "server-2"}


def test_the_end_of_one_server_is_no_reason_to_forget_another(stand: Stand) -> None:
    stand.do(stand.task("spawn"), stand.task("destroy", "server-2"))
    stand.wait_for(2)
    wait_until(lambda: stand.journal.unreported() == [], "the report", 5)
    assert stand.journal.forget(60) == 0
    assert stand.journal.forget(-1) == 1
    stand.do(stand.task("spawn"))
    assert stand.wait_for(3)[2].server_uuid == "server-1"


def test_a_task_that_makes_no_sense_is_a_failure_not_a_crash(stand: Stand) -> None:
    broken = stand.task("spawn")
    broken.payload.clear()
    stand.do(broken, stand.task("dance", "server-2"))
    assert [result.ok for result in stand.wait_for(2)] == [False, False]


def test_many_tasks_are_quick_and_share_reports(tmp_path: Path) -> None:
    stand = Stand(tmp_path, threads=8)
    begun = time.perf_counter()
    for start in range(0, 1000, 50):
        stand.do(*(stand.task("spawn", f"server-{number}") for number in range(start, start + 50)))
    stand.wait_for(1000, 30)
    assert time.perf_counter() - begun < 5  # 200 a second, with room
    assert stand.batches < 500
    stand.end()
