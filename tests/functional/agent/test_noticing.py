"""An agent whose driver notices by itself what its servers do, and has something to remember of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from moorage.agent.journal import Journal
from moorage.agent.service import AgentService, AgentSettings
from moorage.bus.contract import Heartbeat, Result, Task
from moorage.bus.local import LocalBus
from moorage.drivers.contract import RUNNING, SHUT_DOWN, DriverError, Node, ServerSpec
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from tests.functional.agent.conftest import Placement
from tests.support.processes import wait_until

HARDWARE = {"machine_type": "pc-1"}


class NoticingDriver(FakeDriver):
    changed: Callable[[str, int], None]
    away = False
    """Whether the hypervisor answers nobody."""

    def watch(self, changed: Callable[[str, int], None]) -> None:
        self.changed = changed

    def hardware(self, server_uuid: str, node_uuid: str) -> dict[str, str]:
        return HARDWARE

    def servers(self) -> dict[str, int]:
        if self.away:
            raise DriverError("the hypervisor does not answer")
        return super().servers()

    def nodes(self) -> list[Node]:
        if self.away:
            raise DriverError("the hypervisor does not answer")
        return list(super().nodes())


class Site:
    """A conductor that only listens, and an agent that has nothing to say for an hour."""

    def __init__(self, directory: Path, placement: Placement) -> None:
        settings = AgentSettings(host="host-1", heartbeat_interval=3600.0)
        bus = LocalBus()
        self.results: list[Result] = []
        self.heartbeats: list[Heartbeat] = []
        self.conductor = bus.conductor_side()
        self.conductor.receive(self.results.extend, self.heartbeats.append)
        self.driver = NoticingDriver("host-1", FakeSettings(), directory)
        journal = Journal(directory / "journal.sqlite")
        self.agent = AgentService(settings, self.driver, bus.agent_side(), placement, journal)
        self.agent.start()
        wait_until(lambda: len(self.heartbeats) == 1, "the first heartbeat", 5)

    def cast(self, kind: str, payload: object) -> Result:
        before, node = len(self.results), self.driver.nodes()[0].uuid
        told = msgspec.to_builtins(payload)
        self.conductor.cast("host-1", [Task(before + 1, "server-1", kind, 1, node, told)])
        wait_until(lambda: len(self.results) > before, "the result", 5)
        return self.results[-1]

    def spec(self) -> ServerSpec:
        return ServerSpec("server-1", "s", "p", "u", self.driver.nodes()[0].uuid, {})


@pytest.fixture
def site(tmp_path: Path, placement: Placement) -> Iterator[Site]:
    made = Site(tmp_path, placement)
    yield made
    made.agent.stop()


def test_what_makes_a_server_tells_what_must_not_change_about_it(site: Site) -> None:
    assert site.cast("spawn", site.spec()).facts == {"power_state": RUNNING, "hardware": HARDWARE}
    assert site.cast("rebuild", {"spec": site.spec()}).facts["hardware"] == HARDWARE
    assert "hardware" not in site.cast("stop", {}).facts


def test_what_the_driver_notices_is_told_at_once(site: Site) -> None:
    site.cast("spawn", site.spec())
    site.driver.stop("server-1", "")  # behind the agent's back
    site.driver.changed("server-1", SHUT_DOWN)
    wait_until(lambda: len(site.heartbeats) == 2, "the news", 5)
    assert site.heartbeats[-1].observed["server-1"].power == SHUT_DOWN
    site.driver.changed("server-1", SHUT_DOWN)
    site.driver.start("server-1", "")
    site.driver.changed("server-1", RUNNING)
    wait_until(lambda: len(site.heartbeats) == 3, "the news", 5)
    assert site.heartbeats[-1].observed["server-1"].power == RUNNING


def test_an_agent_lives_while_its_hypervisor_does_not_answer(site: Site) -> None:
    """Whoever took it for dead would start its guests elsewhere, while they run here."""
    site.cast("spawn", site.spec())
    site.driver.changed("server-1", RUNNING)
    wait_until(lambda: len(site.heartbeats) == 2, "the news", 5)
    site.driver.away = True
    site.agent.look_soon()
    wait_until(lambda: len(site.heartbeats) == 3, "a sign of life", 5)
    assert site.heartbeats[-1].observed == {}, "its servers are not said to be gone"
    assert site.heartbeats[-1].nodes is None
    site.driver.away = False
