"""Whoever waits for work hears of it or finds it, and one of them is enough."""

from __future__ import annotations

import threading

import pytest

from moorage.conductor.engine import work_signal
from moorage.conductor.engine.work_signal import WorkSignal
from moorage.db.database import Database
from tests.functional.conductor.ledger_rows import enqueue, make_server
from tests.support.processes import wait_until

PATIENCE = 10.0


@pytest.fixture(autouse=True)
def nobody_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else waiting would end by itself, and a test with it."""
    monkeypatch.setattr(work_signal, "_LONGEST", 600.0)


class Waiting:
    def __init__(self, place: WorkSignal, count: int) -> None:
        self._threads = [threading.Thread(target=place.wait, daemon=True) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    @property
    def left(self) -> int:
        return sum(thread.is_alive() for thread in self._threads)


def test_what_another_process_writes_is_found(database: Database) -> None:
    place = WorkSignal(database, ["build"])
    waiting = Waiting(place, 1)
    enqueue(database, make_server(database))
    wait_until(lambda: not waiting.left, "the one who waits", PATIENCE)


def test_one_word_wakes_one(database: Database) -> None:
    place = WorkSignal(database, ["build"])
    waiting = Waiting(place, 3)
    place.notify()
    wait_until(lambda: waiting.left == 2, "one of them", PATIENCE)
    place.notify()
    wait_until(lambda: waiting.left == 1, "the next", PATIENCE)
    place.close()
    wait_until(lambda: not waiting.left, "all of them", PATIENCE)


def test_what_was_said_before_anybody_waited_counts(database: Database) -> None:
    place = WorkSignal(database, ["build"])
    place.notify()
    waiting = Waiting(place, 2)
    wait_until(lambda: waiting.left == 1, "one of them", PATIENCE)
    place.close()
    wait_until(lambda: not waiting.left, "the other", PATIENCE)
