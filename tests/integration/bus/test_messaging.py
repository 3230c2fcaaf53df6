"""The bus over a real RabbitMQ: nothing is lost when a receiver or the broker dies; a dead end shows soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from kombu.connection import Connection
from oslo_config import cfg

from moorage.bus.contract import BusError, Heartbeat, NodeFacts, ObservedServer, Result, Task
from moorage.bus.listener import LISTEN_FAILURES
from moorage.bus.messaging import MessagingAgentSide, MessagingConductorSide
from moorage.bus.oslo import set_defaults
from tests.support import debian, rabbitmq
from tests.support.processes import wait_until
from tests.support.rabbitmq import RabbitMQ


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitMQ]:
    """One of our own, which dies now and then."""
    try:
        server = rabbitmq.start()
    except debian.Unavailable as error:
        pytest.skip(str(error))
    with server:
        yield server


def task(number: int) -> Task:
    return Task(number, f"server-{number}", "spawn", 1, "node", {"name": "ü", "list": [1, {"a": None}]})


def result(number: int) -> Result:
    return Result(number, f"server-{number}", 1, True, facts={"power_state": 1})


def test_both_ways(conf: cfg.ConfigOpts) -> None:
    conductor, agent = MessagingConductorSide(conf), MessagingAgentSide(conf)
    tasks: list[Task] = []
    results: list[Result] = []
    heartbeats: list[Heartbeat] = []
    agent.receive("host-1", tasks.extend)
    conductor.receive(results.extend, heartbeats.append)
    _wait_for_listeners(conductor, agent, "host-1", tasks, results)
    tasks.clear()
    results.clear()
    conductor.cast("host-1", [task(1), task(2)])
    agent.report([result(1)])
    heartbeat = Heartbeat(
        "host-1", 1, {"cell": "x"}, [NodeFacts("u", "n", "fake")], {"server-1": ObservedServer(4, 7)}
    )
    agent.beat(heartbeat)
    wait_until(lambda: bool(len(tasks) == 2 and results and heartbeats), "the messages", 10)
    assert tasks == [task(1), task(2)]
    assert results == [result(1)]
    assert heartbeats == [heartbeat]
    agent.close()
    conductor.close()


def test_conductors_share_the_work(conf: cfg.ConfigOpts) -> None:
    got: dict[str, list[Result]] = {"c1": [], "c2": []}
    sides = [MessagingConductorSide(conf) for _ in got]
    agent = MessagingAgentSide(conf)
    for name, side in zip(got, sides, strict=True):
        side.receive(got[name].extend, lambda _heartbeat: None)
    wait_until(lambda: _report(agent) and all(got.values()), "both conductors", 20)
    for found in got.values():
        found.clear()
    for number in range(100, 140):
        agent.report([result(number)])
    wait_until(lambda: sum(len(found) for found in got.values()) >= 40, "all results", 10)
    seen = sorted(r.operation_id for found in got.values() for r in found if r.operation_id >= 100)
    assert seen == list(range(100, 140))
    assert all(got.values())
    for side in sides:
        side.close()
    agent.close()


def test_tasks_wait_for_a_host_that_is_away(conf: cfg.ConfigOpts) -> None:
    conductor = MessagingConductorSide(conf)
    tasks: list[Task] = []
    _agent_that_comes_and_goes(conf, conductor, tasks)
    tasks.clear()
    conductor.cast("host-1", [task(7)])
    time.sleep(0.3)
    assert tasks == []
    back = MessagingAgentSide(conf)
    back.receive("host-1", tasks.extend)
    wait_until(lambda: task(7) in tasks, "the task", 10)
    back.close()
    conductor.close()


def test_tasks_wait_even_for_a_host_that_was_never_there(conf: cfg.ConfigOpts) -> None:
    conductor, agent = MessagingConductorSide(conf), MessagingAgentSide(conf)
    tasks: list[Task] = []
    conductor.cast("host-1", [task(7)])
    agent.receive("host-1", tasks.extend)
    wait_until(lambda: tasks == [task(7)], "the task", 20)
    agent.close()
    conductor.close()


def test_what_could_not_be_dealt_with_comes_again(conf: cfg.ConfigOpts) -> None:
    conductor, agent = MessagingConductorSide(conf), MessagingAgentSide(conf)
    failures = 0
    results: list[Result] = []

    def on_results(found: list[Result]) -> None:
        nonlocal failures
        if found[0].operation_id == 5 and failures < 2:
            failures += 1
            raise RuntimeError("the database is away")
        results.extend(found)

    conductor.receive(on_results, lambda _heartbeat: None)
    wait_until(lambda: _report(agent) and bool(results), "the conductor", 20)
    agent.report([result(5)])
    wait_until(lambda: any(r.operation_id == 5 for r in results), "the result", 15)
    assert failures == 2
    agent.close()
    conductor.close()


@pytest.mark.parametrize("queues", ["quorum", "classic"])
def test_the_broker_may_die_and_come_back(broker: RabbitMQ, conf: cfg.ConfigOpts, queues: str) -> None:
    """Quorum queues are for several brokers: one alone is ended, and killed only with classic queues."""
    set_defaults(conf)
    conf.set_override("rabbit_quorum_queue", queues == "quorum", group="oslo_messaging_rabbit")
    conductor, agent = MessagingConductorSide(conf), MessagingAgentSide(conf)
    tasks: list[Task] = []
    results: list[Result] = []
    agent.receive("host-1", tasks.extend)
    conductor.receive(results.extend, lambda _heartbeat: None)
    _wait_for_listeners(conductor, agent, "host-1", tasks, results)
    if queues == "quorum":
        broker.end()
    else:
        broker.kill()
    begun = time.monotonic()
    with pytest.raises(BusError):
        conductor.cast("host-1", [task(1)])
    late = MessagingAgentSide(conf)
    with pytest.raises(BusError):
        late.report([result(1)])
    assert time.monotonic() - begun < 20
    broker.start_again()
    wait_until(lambda: _cast(conductor, "host-1", 2) and task(2) in tasks, "tasks to flow again", 60)
    wait_until(lambda: _report(agent, 2) and result(2) in results, "results to flow again", 60)
    for side in (agent, late, conductor):
        side.close()


def test_queues_that_were_made_just_before_the_broker_was_killed_work(
    broker: RabbitMQ, conf: cfg.ConfigOpts
) -> None:
    """With quorum queues on a lone RabbitMQ 3.10, some of them never do."""
    conductor = MessagingConductorSide(conf)
    hosts = [f"new-{number}" for number in range(4)]
    for host in hosts:
        conductor.cast(host, [task(1)])
    broker.kill()
    broker.start_again()
    for host in hosts:
        wait_until(lambda host=host: _cast(conductor, host, 2), f"the queue of {host}", 20)  # type: ignore[misc]
    agent = MessagingAgentSide(conf)
    tasks: list[Task] = []
    agent.receive(hosts[0], tasks.extend)
    wait_until(lambda: {one.operation_id for one in tasks} == {1, 2}, "what was sent before the kill", 20)
    agent.close()
    conductor.close()


def test_a_queue_of_another_type_is_told_and_tried_again(broker: RabbitMQ, conf: cfg.ConfigOpts) -> None:
    """As after an operator changed the type; who deletes the old queue need not restart anything."""
    conductor, agent = MessagingConductorSide(conf), MessagingAgentSide(conf)
    name = f"{conf.bus.exchange}.agent.host-1.info"
    url = broker.url.replace("rabbit:", "amqp:")
    with Connection(url) as connection:  # type: ignore[no-untyped-call]
        connection.default_channel.queue_declare(
            name, durable=True, auto_delete=False, arguments={"x-queue-type": "quorum"}
        )
        tasks: list[Task] = []
        failures = LISTEN_FAILURES._value.get()
        agent.receive("host-1", tasks.extend)
        with pytest.raises(BusError, match="x-queue-type"):
            conductor.cast("host-1", [task(1)])
        wait_until(lambda: LISTEN_FAILURES._value.get() > failures, "the refusal", 20)
        connection.default_channel.queue_delete(name)
    wait_until(lambda: _cast(conductor, "host-1", 2) and task(2) in tasks, "tasks to flow", 60)
    agent.close()
    conductor.close()


def test_it_is_quick_enough(conf: cfg.ConfigOpts) -> None:
    """Twenty batches of fifty, there and back, in the time that 200 servers a second allow."""
    conductor, agent = MessagingConductorSide(conf), MessagingAgentSide(conf)
    tasks: list[Task] = []
    results: list[Result] = []
    done = threading.Event()

    def work(found: list[Task]) -> None:
        tasks.extend(found)
        agent.report([result(one.operation_id) for one in found])

    def finish(found: list[Result]) -> None:
        results.extend(found)
        if len([r for r in results if r.operation_id >= 1000]) >= 1000:
            done.set()

    agent.receive("host-1", work)
    conductor.receive(finish, lambda _heartbeat: None)
    _wait_for_listeners(conductor, agent, "host-1", tasks, results)
    begun = time.perf_counter()
    for start in range(1000, 2000, 50):
        conductor.cast("host-1", [task(number) for number in range(start, start + 50)])
    assert done.wait(30)
    assert time.perf_counter() - begun < 5
    agent.close()
    conductor.close()


def _wait_for_listeners(
    conductor: MessagingConductorSide,
    agent: MessagingAgentSide,
    host: str,
    tasks: list[Task],
    results: list[Result],
) -> None:
    """Listeners connect by themselves; before that, there is no queue that could keep a message."""
    wait_until(lambda: _cast(conductor, host) and bool(tasks), "the agent", 20)
    wait_until(lambda: _report(agent) and bool(results), "the conductor", 20)
    time.sleep(0.3)


def _agent_that_comes_and_goes(
    conf: cfg.ConfigOpts, conductor: MessagingConductorSide, tasks: list[Task]
) -> None:
    agent = MessagingAgentSide(conf)
    agent.receive("host-1", tasks.extend)
    wait_until(lambda: _cast(conductor, "host-1") and bool(tasks), "the agent", 20)
    time.sleep(0.3)
    agent.close()


def _cast(conductor: MessagingConductorSide, host: str, number: int = 0) -> bool:
    try:
        conductor.cast(host, [task(number)])
    except BusError:
        return False
    time.sleep(0.1)
    return True


def _report(agent: MessagingAgentSide, number: int = 0) -> bool:
    try:
        agent.report([result(number)])
    except BusError:
        return False
    time.sleep(0.1)
    return True
