"""The bus inside one process."""

from __future__ import annotations

import threading
import time

import pytest

from moorage.bus.channel import Channel
from moorage.bus.contract import BusError, Heartbeat, Result, Task
from moorage.bus.local import LocalBus
from tests.support.processes import wait_until


def task(number: int) -> Task:
    return Task(operation_id=number, server_uuid=f"s{number}", kind="spawn", attempt=1, node_uuid="n")


def test_tasks_reach_the_agent_of_their_host_only() -> None:
    bus = LocalBus()
    got: dict[str, list[Task]] = {"a": [], "b": []}
    sides = []
    for host in got:
        side = bus.agent_side()
        side.receive(host, got[host].extend)
        sides.append(side)
    conductor = bus.conductor_side()
    conductor.cast("a", [task(1), task(2)])
    conductor.cast("b", [task(3)])
    for side in sides:
        side.close()
    assert [found.operation_id for found in got["a"]] == [1, 2]
    assert [found.operation_id for found in got["b"]] == [3]


def test_results_and_heartbeats_reach_the_conductor() -> None:
    bus = LocalBus()
    results: list[Result] = []
    heartbeats: list[Heartbeat] = []
    conductor, agent = bus.conductor_side(), bus.agent_side()
    conductor.receive(results.extend, heartbeats.append)
    agent.report([Result(operation_id=1, server_uuid="s1", attempt=1, ok=True)])
    agent.beat(Heartbeat(host="a", version=1))
    conductor.close()
    assert [result.operation_id for result in results] == [1]
    assert [heartbeat.host for heartbeat in heartbeats] == ["a"]


def test_who_is_not_there_can_not_be_sent_to() -> None:
    bus = LocalBus()
    with pytest.raises(BusError):
        bus.conductor_side().cast("nobody", [task(1)])
    with pytest.raises(BusError):
        bus.agent_side().report([])
    agent = bus.agent_side()
    agent.receive("a", lambda _tasks: None)
    agent.close()
    with pytest.raises(BusError):
        bus.conductor_side().cast("a", [task(1)])


def test_a_slow_receiver_gets_what_came_meanwhile_at_once() -> None:
    entered, gate = threading.Event(), threading.Event()
    batches: list[list[int]] = []

    def slow(batch: list[int]) -> None:
        batches.append(batch)
        entered.set()
        gate.wait(5)

    channel = Channel("test", slow)
    channel.put([1])
    assert entered.wait(5)
    for number in range(2, 6):
        channel.put([number])
    gate.set()
    channel.close()
    assert batches == [[1], [2, 3, 4, 5]]


def test_a_full_channel_refuses_after_its_patience() -> None:
    gate, entered = threading.Event(), threading.Event()

    def stuck(_batch: list[int]) -> None:
        entered.set()
        gate.wait(10)

    channel = Channel("test", stuck, capacity=2, patience=0.1)
    channel.put([1])
    assert entered.wait(5)
    channel.put([2, 3])
    begun = time.monotonic()
    with pytest.raises(BusError, match="full"):
        channel.put([4])
    assert 0.05 < time.monotonic() - begun < 3
    gate.set()
    channel.close()


def test_a_delivery_that_fails_does_not_end_the_channel() -> None:
    got: list[int] = []

    def deliver(batch: list[int]) -> None:
        if 1 in batch:
            raise ValueError("no")
        got.extend(batch)

    channel = Channel("test", deliver)
    channel.put([1])
    time.sleep(0.05)
    channel.put([2])
    wait_until(lambda: got == [2], "the second message", 5)
    channel.close()
