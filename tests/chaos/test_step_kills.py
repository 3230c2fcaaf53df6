"""Each kind of operation, each step, each process: killed there and resumed, it ends as if undisturbed.

One run without a kill says which points there are; each of them is then struck in a run of its own. `make
step-kills` strikes all on both databases; else a few of each scenario are struck on one of them
(`MOORAGE_STEP_KILLS` says how many, or `all`; `CHAOS_SEED` chooses others).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from functools import cache

import pytest
import requests

from moorage.conductor.operations.register import KINDS
from tests.chaos.steps.books import Books, Picture
from tests.chaos.steps.clouds import CLOUDS
from tests.chaos.steps.scenarios import SCENARIOS, UNREACHED, Scenario
from tests.chaos.steps.user import User
from tests.support import debian
from tests.support.processes import NotReadyError, wait_until

KILLS = os.environ.get("MOORAGE_STEP_KILLS", "1")
SEED = os.environ.get("CHAOS_SEED", "1")
CASES = [
    pytest.param(database, scenario, id=f"{database}-{scenario.name.replace(' ', '_')}")
    for turn, database in enumerate(CLOUDS)
    for number, scenario in enumerate(SCENARIOS)
    if KILLS == "all" or number % len(CLOUDS) == turn
]
_REACHED: set[str] = set()
"""The steps that were come to."""
_RUN: list[Scenario] = []


@pytest.fixture(scope="module")
def user_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], User]]:
    """Of the cloud on a database, which is started when it is asked for first."""
    with ExitStack() as stack:

        @cache
        def start(database: str) -> User:
            directory = tmp_path_factory.mktemp(f"steps-{database}")
            user = User(stack.enter_context(CLOUDS[database](directory)))
            stack.callback(user.close)
            return user

        yield start


@pytest.fixture
def user(user_of: Callable[[str], User], database: str) -> Iterator[User]:
    try:
        found = user_of(database)
    except debian.Unavailable as error:
        pytest.skip(str(error))
    yield found
    found.cloud.points.disarm()
    found.revive()
    found.clear()


class Run:
    """A scenario, once."""

    def __init__(self, user: User, scenario: Scenario) -> None:
        self._user = user
        self._scenario = scenario
        self.uuid = scenario.ready(user)
        self._home = user.row(self.uuid).host if self.uuid else None
        self._before = user.last_operation()
        self._deaths = user.deaths

    def ask(self) -> None:
        """Whoever is not answered looks whether it was heard."""
        try:
            self._ask()
        except requests.ConnectionError:  # a process that dies closes its connections before it is dead
            wait_until(self._is_killed, "somebody to die", 10)
            if self._user.last_operation() == self._before:
                self._scenario.ask(self._user, self.uuid)

    def _ask(self) -> None:
        """Some answers come only once it is done, by those who go on with it."""
        with ThreadPoolExecutor(1) as pool:
            asking = pool.submit(self._scenario.ask, self._user, self.uuid)
            while not asking.done():
                self._user.revive()
                wait([asking], timeout=0.05)
            asking.result()

    def _is_killed(self) -> bool:
        """Somebody died, and is back."""
        self._user.revive()
        return self._user.deaths > self._deaths

    def end(self, *, killed: bool) -> Picture:
        user = self._user
        if killed:
            self._await_strike()

        def at_rest() -> bool:
            user.revive()
            return not user.unfinished()

        wait_until(at_rest, f"the end of {user.unfinished()}", 40)
        return self._picture()

    def _await_strike(self) -> None:
        """What comes after the end of an operation comes soon."""
        points = self._user.cloud.points
        wait_until(lambda: not points.is_armed(), "somebody to come there", 10)
        wait_until(self._is_killed, "somebody to die", 10)

    def _picture(self) -> Picture:
        user = self._user
        if not self.uuid:
            (self.uuid,) = user.there()
        with suppress(NotReadyError):
            wait_until(lambda: not self._books().differences(), "the books to balance", 20)
        books = self._books()
        differences = books.differences()
        assert not differences, "; ".join(differences)
        picture = books.picture(self._scenario.kind)
        assert (picture.status, picture.outcome) == (self._scenario.status, self._scenario.outcome)
        return picture

    def _books(self) -> Books:
        return Books(self._user, self.uuid, self._home)


def distinct(points: list[str]) -> list[str]:
    """Without those before which nothing was changed anywhere since the one before."""
    found: list[str] = []
    for point in points:
        step, _, moment = point.partition(": ")
        last, _, before = (found or [""])[-1].partition(": ")
        idle = last == step and (before == "begins" or before.startswith("call"))
        if not (moment == "begins" and before == "is kept") and not (moment == "is done" and idle):
            found.append(point)
    return found


def chosen(scenario: Scenario, database: str, points: list[str]) -> list[str]:
    """Those that are struck now."""
    if KILLS == "all":
        return distinct(points)
    chance = random.Random(f"{scenario.name} {database} {SEED}")
    return chance.sample(points, min(int(KILLS), len(points)))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("database", "scenario"), CASES)
def test_what_is_killed_at_any_step_ends_as_if_it_was_not(
    user: User, database: str, scenario: Scenario
) -> None:
    cloud = user.cloud
    calm = Run(user, scenario)
    cloud.points.trace()
    calm.ask()
    wanted = calm.end(killed=False)
    points = cloud.points.seen()
    user.clear()
    _REACHED.update(point.partition(":")[0] for point in points)
    _RUN.append(scenario)
    faults = []
    for point in chosen(scenario, database, points):
        fault = strike(user, scenario, point, wanted)
        print(f"{scenario.name}: {point}: {fault or 'as if nothing had been'}", flush=True)
        if fault is not None:
            faults.append(f"{point}: {fault}")
    assert faults == []


def strike(user: User, scenario: Scenario, point: str, wanted: Picture) -> str | None:
    """What is wrong after a kill at this point."""
    run = Run(user, scenario)
    user.cloud.points.arm(point)
    try:
        run.ask()
        found = run.end(killed=True)
    except (AssertionError, NotReadyError) as error:
        user.cloud.points.disarm()
        fault = f"{error}"
    else:
        fault = "" if found == wanted else f"{found}, not {wanted}"
    user.revive()
    user.clear()
    return fault or None


def test_every_step_of_every_kind_is_come_to() -> None:
    """A kind, or a step, that is new needs a scenario of its own."""
    declared = {f"{kind.name}/{step.name}" for kind in KINDS for step in kind.steps}
    reached = {step.partition("/")[0] for step in declared - UNREACHED.keys()}
    assert reached == {scenario.kind for scenario in SCENARIOS}
    assert UNREACHED.keys() <= declared
    if {scenario.name for scenario in _RUN} != {scenario.name for scenario in SCENARIOS}:
        pytest.skip("not all scenarios were run")
    assert declared - _REACHED == UNREACHED.keys()
