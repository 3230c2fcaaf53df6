"""Allocation ratios: the driver's, unless the operator says otherwise, unless the host's aggregates do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from moorage.agent.journal import Journal
from moorage.agent.options import OPTIONS
from moorage.agent.service import AgentService, AgentSettings
from moorage.agent.tracker import Tracker
from moorage.bus.contract import SET_RATIOS, Heartbeat, Task
from moorage.bus.local import LocalBus
from moorage.core import config
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from tests.functional.agent.conftest import Placement
from tests.support.processes import wait_until

DRIVER = FakeSettings(vcpus=10, cpu_allocation_ratio=4.0, ram_mb=1000, ram_allocation_ratio=1.0, disk_gb=100)


class Host:
    """An agent, and the conductor's end of its bus."""

    def __init__(self, directory: Path, placement: Placement, ratios: Mapping[str, float]) -> None:
        self.heartbeats: list[Heartbeat] = []
        self._placement = placement
        self._conductor, agent_side = (bus := LocalBus()).conductor_side(), bus.agent_side()
        self._conductor.receive(lambda results: None, self.heartbeats.append)
        driver = FakeDriver("host-1", DRIVER, directory)
        self._node = driver.nodes()[0].uuid
        settings = AgentSettings("host-1", heartbeat_interval=0.05, inventory_interval=30.0, ratios=ratios)
        self.agent = AgentService(settings, driver, agent_side, placement, Journal(directory / "journal"))
        self.agent.start()

    def tell(self, **ratios: float) -> None:
        self._conductor.cast("host-1", [Task(0, "", SET_RATIOS, 0, "", {"ratios": ratios})])

    def await_capacity(self, **capacity: int) -> None:
        query = [("resources", ",".join(f"{name}:1" for name in capacity)), ("limit", "1")]

        def is_so() -> bool:
            summary = self._placement.candidates(query).provider_summaries.get(self._node)
            held = {} if summary is None else summary.resources
            return all(held.get(name, {}).get("capacity") == amount for name, amount in capacity.items())

        wait_until(is_so, f"a capacity of {capacity}", 10)


Make = Callable[..., Host]


@pytest.fixture
def host(tmp_path: Path, placement: Placement) -> Iterator[Make]:
    made: list[Host] = []

    def make(**ratios: float) -> Host:
        if made:
            made.pop().agent.stop()
        made.append(Host(tmp_path / "agent", placement, ratios))
        return made[0]

    yield make
    made[0].agent.stop()


def test_the_driver_knows_unless_the_operator_says_otherwise(host: Make) -> None:
    host().await_capacity(VCPU=40, MEMORY_MB=1000, DISK_GB=100)
    host(VCPU=2.0, DISK_GB=1.5).await_capacity(VCPU=20, MEMORY_MB=1000, DISK_GB=150)


def test_aggregates_win_and_give_way_again(host: Make) -> None:
    one = host(VCPU=2.0)
    one.tell(VCPU=8.0, MEMORY_MB=1.5)
    one.await_capacity(VCPU=80, MEMORY_MB=1500, DISK_GB=100)
    wait_until(lambda: one.heartbeats[-1].facts["ratios"] == {"VCPU": 8.0, "MEMORY_MB": 1.5}, "word of it", 5)
    one.tell(MEMORY_MB=1.5)
    one.await_capacity(VCPU=20, MEMORY_MB=1500)


def test_what_aggregates_say_outlives_a_restart(host: Make) -> None:
    one = host()
    one.tell(VCPU=1.0)
    one.await_capacity(VCPU=10)
    again = host()
    wait_until(lambda: bool(again.heartbeats), "a heartbeat", 5)
    assert again.heartbeats[0].facts["ratios"] == {"VCPU": 1.0}
    again.await_capacity(VCPU=10)


def test_options_become_ratios_by_resource_class() -> None:
    given = {"agent.cpu_allocation_ratio": 3.0, "agent.disk_allocation_ratio": 0.9}
    assert AgentSettings.from_conf(config.read([], [OPTIONS], given)).ratios == {"VCPU": 3.0, "DISK_GB": 0.9}
    assert AgentSettings.from_conf(config.read([], [OPTIONS])).ratios == {}


def test_nodes_that_come_later_have_the_same_ratios(tmp_path: Path, placement: Placement) -> None:
    nodes = list(FakeDriver("host-1", FakeSettings(nodes=2, vcpus=10), tmp_path).nodes())
    tracker = Tracker(placement, Journal(tmp_path / "journal"))
    tracker.ratios = {"VCPU": 3.0}
    for known in (nodes[:1], nodes):
        assert tracker.report(known)
    found = placement.candidates([("resources", "VCPU:1"), ("limit", "9")]).provider_summaries
    assert {found[node.uuid].resources["VCPU"]["capacity"] for node in nodes} == {30}
