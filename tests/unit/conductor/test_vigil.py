"""Silence means that a host is down only to somebody who was listening."""

from __future__ import annotations

from datetime import timedelta

from moorage.conductor.agents.vigil import Vigil


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def listening(vigil: Vigil, clock: Clock, seconds: int) -> None:
    for _ in range(seconds):
        clock.now += 1
        vigil.heard()


def test_hosts_are_judged_after_a_conductor_has_listened_long_enough() -> None:
    clock = Clock()
    vigil = Vigil(60, clock)
    listening(vigil, clock, 59)
    assert vigil.down_after() > timedelta(days=1)
    listening(vigil, clock, 2)
    assert vigil.down_after() == timedelta(seconds=60)


def test_after_a_silence_of_all_hosts_none_is_judged_by_it() -> None:
    clock = Clock()
    vigil = Vigil(60, clock)
    listening(vigil, clock, 100)
    clock.now += 40
    vigil.heard()
    assert vigil.down_after() > timedelta(days=1)
    listening(vigil, clock, 60)
    assert vigil.down_after() == timedelta(seconds=60)


def test_nor_after_the_database_was_away() -> None:
    clock = Clock()
    vigil = Vigil(60, clock)
    listening(vigil, clock, 100)
    vigil.interrupted()
    assert vigil.down_after() > timedelta(days=1)
