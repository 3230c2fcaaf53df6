"""An agent as a whole, on the bus of its process and a real Placement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from prometheus_client import REGISTRY

from moorage.agent.journal import Journal
from moorage.agent.service import SILENT, AgentService, AgentSettings
from moorage.agent.tracker import DISABLED_TRAIT
from moorage.bus.contract import SET_STATUS, Heartbeat, ObservedServer, Result, Task
from moorage.bus.local import LocalBus
from moorage.drivers import capabilities, parts
from moorage.drivers.contract import NO_STATE, RUNNING, SHUT_DOWN, ServerSpec
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from tests.functional.agent.conftest import Placement
from tests.support.processes import wait_until

SETTINGS = AgentSettings(host="host-1", cell="rack", heartbeat_interval=0.05, inventory_interval=0.05)


class Cloud:
    """A conductor that only listens, and one agent that may die and come back."""

    def __init__(self, directory: Path, placement: Placement) -> None:
        self._directory = directory
        self._placement = placement
        self.bus = LocalBus()
        self.conductor = self.bus.conductor_side()
        self.results: list[Result] = []
        self.heartbeats: list[Heartbeat] = []
        self.conductor.receive(self.results.extend, self.heartbeats.append)
        self.start()

    def start(self) -> None:
        self.driver = FakeDriver("host-1", FakeSettings(nodes=2), self._directory)
        self.agent = AgentService(
            SETTINGS,
            self.driver,
            self.bus.agent_side(),
            self._placement,
            Journal(self._directory / "journal.sqlite"),
        )
        self.agent.start()

    def spawn(self, number: int) -> None:
        node = self.driver.nodes()[0].uuid
        spec = ServerSpec(f"server-{number}", "s", "p", "u", node, {})
        self.cast("spawn", f"server-{number}", msgspec.to_builtins(spec))
        wait_until(lambda: len(self.results) >= number, "the result", 5)

    def cast(self, kind: str, server: str, payload: dict[str, object]) -> None:
        node = self.driver.nodes()[0].uuid
        self.conductor.cast("host-1", [Task(len(self.results) + 1, server, kind, 1, node, payload)])

    def said(self, server: str, power: int) -> bool:
        return any(
            server in heartbeat.observed and heartbeat.observed[server].power == power
            for heartbeat in self.heartbeats
        )

    def next_heartbeats(self, count: int = 2) -> list[Heartbeat]:
        before = len(self.heartbeats)
        wait_until(lambda: len(self.heartbeats) >= before + count, "heartbeats", 5)
        return self.heartbeats[before:]


@pytest.fixture
def cloud(tmp_path: Path, placement: Placement) -> Iterator[Cloud]:
    made = Cloud(tmp_path / "agent", placement)
    yield made
    made.agent.stop()


def test_it_says_who_it_is_and_what_it_has_once(cloud: Cloud) -> None:
    wait_until(lambda: len(cloud.heartbeats) >= 3, "heartbeats", 5)
    first, second, *_ = cloud.heartbeats
    assert (first.host, first.facts["cell"], first.facts["driver"]) == ("host-1", "rack", "fake")
    assert [node.uuid for node in first.nodes or []] == [node.uuid for node in cloud.driver.nodes()]
    assert second.nodes is None
    told = [node.facts["capabilities"] for node in first.nodes or []]
    can = [capabilities.of(parts.of(cloud.driver), node) for node in cloud.driver.nodes()]
    assert told == msgspec.to_builtins(can)
    assert told[0]["console_log"] is True


def test_its_nodes_are_in_placement(cloud: Cloud, placement: Placement) -> None:
    wait_until(lambda: len(placement.providers()) == 2, "inventory", 5)


def test_it_does_tasks_and_reports(cloud: Cloud) -> None:
    cloud.spawn(1)
    assert cloud.results[0].ok
    assert cloud.driver.servers() == {"server-1": RUNNING}


def test_tasks_that_wait_for_a_thread_are_counted(cloud: Cloud, tmp_path: Path, placement: Placement) -> None:
    """Of a driver that hangs, which costs a thread for each task."""
    cloud.agent.stop()
    driver = FakeDriver("host-1", FakeSettings(nodes=1), tmp_path / "slow")
    node = driver.nodes()[0].uuid
    journal = Journal(tmp_path / "slow" / "journal.sqlite")
    settings = replace(SETTINGS, threads=2)
    agent = AgentService(settings, driver, cloud.bus.agent_side(), placement, journal)
    agent.start()
    for number in range(1, 6):
        spec = ServerSpec(f"hung-{number}", "s", "p", "u", node, {}, metadata={"fake:spawn": "hang"})
        task = Task(number, f"hung-{number}", "spawn", 1, node, msgspec.to_builtins(spec))
        cloud.conductor.cast("host-1", [task])

    def waiting() -> float | None:
        return REGISTRY.get_sample_value("moorage_agent_tasks_waiting", {"host": "host-1"})

    wait_until(lambda: waiting() == 3, "three of five to wait", 10)
    agent.stop()


def test_power_states_are_told_when_they_change(cloud: Cloud) -> None:
    cloud.spawn(1)
    wait_until(lambda: cloud.said("server-1", RUNNING), "the news", 5)
    assert all(not heartbeat.observed for heartbeat in cloud.next_heartbeats(3)[1:])
    cloud.driver.stop("server-1", "")  # behind the agent's back
    wait_until(lambda: cloud.said("server-1", SHUT_DOWN), "the news", 5)
    cloud.driver.destroy("server-1", "")
    wait_until(lambda: cloud.said("server-1", NO_STATE), "the news", 5)


def test_after_a_restart_everything_is_told_again(cloud: Cloud) -> None:
    cloud.spawn(1)
    wait_until(lambda: cloud.said("server-1", RUNNING), "the news", 5)
    cloud.agent.stop()
    cloud.heartbeats.clear()
    cloud.start()
    wait_until(lambda: bool(cloud.heartbeats), "a heartbeat", 5)
    assert cloud.heartbeats[0].observed == {"server-1": ObservedServer(RUNNING, 1, 1)}
    assert len(cloud.heartbeats[0].nodes or []) == 2


def test_after_an_outage_of_the_bus_everything_is_told_again(cloud: Cloud) -> None:
    """Conductors may have taken the host for dead, and decided without it."""
    cloud.spawn(1)
    wait_until(lambda: cloud.said("server-1", RUNNING), "the news", 5)
    failures = SILENT._value.get()
    cloud.conductor.close()
    wait_until(lambda: SILENT._value.get() > failures, "a heartbeat that nobody takes", 5)
    cloud.heartbeats.clear()
    cloud.conductor.receive(cloud.results.extend, cloud.heartbeats.append)
    wait_until(lambda: bool(cloud.heartbeats), "a heartbeat", 5)
    assert cloud.heartbeats[0].observed == {"server-1": ObservedServer(RUNNING, 1, 1)}
    assert len(cloud.heartbeats[0].nodes or []) == 2
    assert not cloud.next_heartbeats(3)[-1].observed


def test_a_disabled_host_stays_disabled_over_a_restart(cloud: Cloud, placement: Placement) -> None:
    node = cloud.driver.nodes()[0].uuid
    wait_until(lambda: node in placement.providers(), "inventory", 5)
    cloud.cast(SET_STATUS, "", {"disabled": True})
    wait_until(lambda: DISABLED_TRAIT in placement.traits(node), "the trait", 5)
    assert cloud.next_heartbeats()[-1].facts["disabled"] is True
    cloud.agent.stop()
    cloud.start()
    assert cloud.next_heartbeats()[-1].facts["disabled"] is True
    cloud.cast(SET_STATUS, "", {"disabled": False})
    wait_until(lambda: DISABLED_TRAIT not in placement.traits(node), "the trait to go", 5)


def test_signs_of_life_go_on_when_placement_is_away(cloud: Cloud, placement: Placement) -> None:
    placement.unplugged = True
    cloud.next_heartbeats(3)
    cloud.spawn(1)
    assert cloud.results[0].ok
