"""Kill parts of a whole deployment at random, with a hundred operations under way; then check all its books.

`CHAOS_SEED` repeats a schedule; `CHAOS_SCHEDULES` asks for more of them, `CHAOS_KILLS` for longer ones and
`CHAOS_SERVERS` for busier ones, as `make chaos` does.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator

import pytest
import requests

from tests.chaos.cloud_books import CloudBooks
from tests.chaos.crowd import PROJECTS, Crowd, User
from tests.support import debian, rabbitmq
from tests.support.deployment import LEASE_SECONDS, Deployment, Shape, running
from tests.support.processes import NotReadyError, wait_until

SCHEDULES = int(os.environ.get("CHAOS_SCHEDULES", "1"))
KILLS = int(os.environ.get("CHAOS_KILLS", "6"))
FIRST_SEED = int(os.environ.get("CHAOS_SEED", random.SystemRandom().randrange(10**6)))
SERVERS = int(os.environ.get("CHAOS_SERVERS", "120"))
IN_FLIGHT = SERVERS * 5 // 6
SETTLE_SECONDS = 120.0
_ONE_IN = min(8, max(1, KILLS // 3))
"""So that the broker, the database and a stalled conductor each have their turn."""
SHAPE = Shape(exclusive_nodes=80, faults="spawn:delay=3+fail_here@0.05,destroy:delay=1,reboot:delay=0.5")


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    try:
        with running(tmp_path_factory.mktemp("scaled"), SHAPE, start_broker=rabbitmq.start) as cloud:
            yield cloud
    except debian.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture
def books(deployment: Deployment) -> Iterator[CloudBooks]:
    opened = CloudBooks(deployment)
    yield opened
    opened.close()


class Killer:
    """Ends something at random and starts it again, and says so."""

    def __init__(self, deployment: Deployment, books: CloudBooks, chance: random.Random) -> None:
        self._deployment = deployment
        self._books = books
        self._chance = chance
        self._begun = time.monotonic()

    def kills(self, count: int, number: int) -> list[Callable[[], None]]:
        """Mostly kills of our processes; every few of them something else, by turns."""
        chosen: list[Callable[[], None]] = [self.part] * count
        for turn, position in enumerate(range(0, count, _ONE_IN)):
            others = [self.broker, self.database, self.stall]
            chosen[position + self._chance.randrange(min(_ONE_IN, count - position))] = others[
                (number + turn) % len(others)
            ]
        return chosen

    def part(self) -> None:
        parts = self._deployment.parts
        victims = self._chance.sample(parts, self._chance.choice([1, 1, 2]))
        self._say(f"{self._books.in_flight()} in flight: kill", *(part.name for part in victims))
        for part in victims:
            part.kill()
        self._pause(1.5)
        for part in victims:
            part.start(wait=False)

    def stall(self) -> None:
        """For longer than its lease: another conductor takes its work over, then it wakes up in mid-step."""
        conductor = self._chance.choice(self._deployment.conductors)
        self._say(f"{self._books.in_flight()} in flight: stall", conductor.name)
        conductor.stall(LEASE_SECONDS + self._chance.uniform(1.0, 4.0))

    def broker(self) -> None:
        how = self._chance.choice([self._deployment.broker.end, self._deployment.broker.kill])
        self._say(how.__name__, "RabbitMQ")
        how()
        self._pause(2.0)
        self._deployment.broker.start_again()
        self._say("RabbitMQ is back")

    def database(self) -> None:
        how = self._chance.choice([signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
        self._say(how.name, "PostgreSQL")
        self._deployment.database.end(how)
        self._pause(2.0)
        self._deployment.database.start_again()
        self._say("PostgreSQL is back")

    def _pause(self, longest: float) -> None:
        time.sleep(self._chance.uniform(0, longest))

    def _say(self, *words: str) -> None:
        print(f"{time.monotonic() - self._begun:6.1f} s: {' '.join(words)}")


@pytest.mark.timeout(600 + 30 * KILLS)
@pytest.mark.parametrize("number", range(SCHEDULES))
def test_whatever_dies_nothing_is_stuck_and_nothing_leaks(
    deployment: Deployment, books: CloudBooks, number: int
) -> None:
    seed = FIRST_SEED + number
    chance = random.Random(seed)
    print(f"seed {seed}")
    users = [User(project, deployment.urls, deployment.image_id, seed) for project in PROJECTS]
    crowd = Crowd(users, SERVERS)
    try:
        wait_until(lambda: books.in_flight() >= IN_FLIGHT, f"{IN_FLIGHT} operations in flight", 180)
        for kill in Killer(deployment, books, chance).kills(KILLS, number):
            kill()
            time.sleep(chance.uniform(0.3, 2.5))
    finally:
        crowd.stop()
    print(f"answers {dict(crowd.answers)}")
    assert not crowd.surprises, crowd.surprises[:5]
    settle(deployment, books)
    print(f"moves {dict(books.moves())}")
    assert any(server.host is not None for server in books.servers())
    delete_all(deployment)
    settle(deployment, books)
    assert books.servers() == []


def settle(deployment: Deployment, books: CloudBooks) -> None:
    """All ends well within a bounded time, with every process alive."""
    begun = time.monotonic()
    deployment.wait_for_apis()

    def balanced() -> bool:
        try:
            return books.in_flight() == 0 and not books.differences()
        except (requests.ConnectionError, AssertionError):  # it listens, but does not serve yet
            return False

    try:
        wait_until(balanced, "the books to balance", SETTLE_SECONDS)
    except NotReadyError:
        found = books.differences()
        text = "\n".join([f"{len(found)} differences:", *found[:20], deployment.logs()])
        pytest.fail(text)
    books.check_counters()
    dead = [part.name for part in deployment.parts if part.ended_by_itself]
    assert not dead, f"ended by themselves: {dead}\n{deployment.logs()}"
    print(f"settled in {time.monotonic() - begun:.1f} s")


def delete_all(deployment: Deployment) -> None:
    for project in PROJECTS:
        user = User(project, deployment.urls, deployment.image_id, 0)
        for server in user.servers():
            user.delete(server["id"])
