"""Silence means that a host is down only to somebody who was listening."""

from __future__ import annotations

from datetime import timedelta

from moorage.conductor.agents.listening import ListeningPeriod


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def listening(period: ListeningPeriod, clock: Clock, seconds: int) -> None:
    for _ in range(seconds):
        clock.now += 1
        period.heard()


def test_hosts_are_judged_after_a_conductor_has_listened_long_enough() -> None:
    clock = Clock()
    period = ListeningPeriod(60, clock)
    listening(period, clock, 59)
    assert period.down_after() > timedelta(days=1)
    listening(period, clock, 2)
    assert period.down_after() == timedelta(seconds=60)


def test_after_a_silence_of_all_hosts_none_is_judged_by_it() -> None:
    clock = Clock()
    period = ListeningPeriod(60, clock)
    listening(period, clock, 100)
    clock.now += 40
    period.heard()
    assert period.down_after() > timedelta(days=1)
    listening(period, clock, 60)
    assert period.down_after() == timedelta(seconds=60)


def test_nor_after_the_database_was_away() -> None:
    clock = Clock()
    period = ListeningPeriod(60, clock)
    listening(period, clock, 100)
    period.interrupted()
    assert period.down_after() > timedelta(days=1)
