"""Whatever order tasks come in, however often, and whenever the agent dies: the newest task decides."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from moorage.agent.journal import fence
from moorage.bus.contract import Task
from tests.support.processes import wait_until
from tests.unit.agent.stand import Stand


def story(stand: Stand, server: str, rng: random.Random) -> list[Task]:
    """What conductors may send about one server in its life, in the order in which they decided it."""
    tasks: list[Task] = []
    for operation in range(1, rng.randint(2, 5)):
        for attempt in range(1, rng.randint(2, 4)):
            slow = rng.choice(["delay=0", "delay=0.01", "delay=0.03"])
            tasks.append(stand.task("spawn", server, operation, attempt, spawn=slow))
            if rng.random() < 0.5:
                tasks.append(stand.task("destroy", server, operation, attempt))
    return tasks


def deliver(stand: Stand, tasks: list[Task], threads: int) -> None:
    """Batches from several threads of the bus at once."""
    batches = [tasks[number::threads] for number in range(threads)]
    workers = [threading.Thread(target=stand.executor.submit, args=(batch,)) for batch in batches]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


@pytest.mark.parametrize("seed", range(15))
def test_the_newest_task_decides(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    stand = Stand(tmp_path, threads=3)
    stories = [story(stand, f"server-{number}", rng) for number in range(12)]
    todo = [task for tasks in stories for task in tasks * rng.choice([1, 2])]
    rng.shuffle(todo)
    cut = rng.randrange(len(todo))
    deliver(stand, todo[:cut], threads=3)
    stand.end()
    stand = Stand(tmp_path, threads=3)
    deliver(stand, todo[cut:], threads=3)
    newest = [max(tasks, key=fence) for tasks in stories]
    deliver(stand, newest, threads=1)  # nobody answered: conductors ask again
    stand.wait_idle()
    running = {task.server_uuid for task in newest if task.kind == "spawn"}
    assert set(stand.driver.servers()) == running
    wanted = {(task.operation_id, task.attempt, task.server_uuid) for task in newest}
    wait_until(lambda: _told(stand) >= wanted, "their results", 5)
    stand.end()


def _told(stand: Stand) -> set[tuple[int, int, str]]:
    return {(told.operation_id, told.attempt, told.server_uuid) for told in list(stand.results) if told.ok}
