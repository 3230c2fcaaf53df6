"""Filling a reference with all that its users do: a random fleet, random writes, and its published suites."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.conformance.fleets import Fleet, make_fleet
from tests.conformance.seeds import SEED
from tests.conformance.suites import GabbiRunner, profile_of, suite_files
from tests.conformance.writes import Write, any_write, prelude
from tests.support.profiles import Profile
from tests.support.wire import Wire

THOROUGH = float(os.environ.get("MOORAGE_EXAMPLES") or 0) >= 1

# Those that leave something of each kind behind, at little cost; `make conformance` takes all of them.
SUITES = (
    *("aggregate", "allocations-1-8", "allocations-1-12", "allocations-1.28", "consumer-types-1.38"),
    *("consumer-types-bug-story-2009167", "ensure-consumer", "reshaper", "resource-provider-aggregates"),
    *("traits", "with-allocations"),
)


def fill_by_load(port: int, number: int) -> Fleet:
    """A large fleet, so that it is worth asking for candidates; then writes, refused or not."""
    dice = random.Random(f"{SEED}/{number}")
    fleet = next(fleet for fleet in iter(lambda: make_fleet(dice), None) if len(fleet.claims) >= 12)
    with Wire(port) as wire:
        fleet.build(wire)
        for write in prelude():
            _send(wire, write)

        @seed(SEED + number)
        @settings(
            max_examples=2,
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(any_write(), min_size=40, max_size=60))
        def play(writes: list[Write]) -> None:
            for write in writes:
                _send(wire, write)

        play()
    return fleet


def _send(wire: Wire, write: Write) -> None:
    wire.request(write.method, write.path, write.resolved(wire), version=f"1.{write.version}")


def fill_by_suites(port: int, gabbi: GabbiRunner) -> None:
    """One after the other in one database, for which they are not made: some of their tests fail, which is
    no matter, since only what they leave behind counts."""
    for suite in _suites():
        gabbi.run(suite, f"http://127.0.0.1:{port}")


def _suites() -> Iterator[str]:
    for suite in suite_files():
        if profile_of(suite) is Profile.DEFAULT and (THOROUGH or suite.stem in SUITES):
            yield suite.stem
