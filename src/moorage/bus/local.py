"""The bus of one process: queues in memory, one for each agent and two towards the conductor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from moorage.bus.channel import Channel
from moorage.bus.contract import Answer, BusError, Heartbeat, NoAnswerError, Question, Result, Task
from moorage.core.elastic_pool import ElasticPool

T = TypeVar("T")


class LocalBus:
    """Joins the conductor, the API and the agents of a process. Each gets a side, and closes only that."""

    def __init__(
        self, capacity: int = 10_000, patience: float = 5.0, pool: ElasticPool | None = None
    ) -> None:
        self._capacity = capacity
        self._patience = patience
        self._pool = pool or ElasticPool("bus")
        self._lock = threading.Lock()
        self._agents: dict[str, Channel[Task]] = {}
        self._answerers: dict[str, Callable[[Question], Answer]] = {}
        self._questions = ElasticPool("questions")
        """Of its own, so that a machine that hangs keeps no sign of life back."""
        self._results: Channel[Result] | None = None
        self._heartbeats: Channel[Heartbeat] | None = None

    def conductor_side(self) -> LocalConductorSide:
        return LocalConductorSide(self)

    def agent_side(self) -> LocalAgentSide:
        return LocalAgentSide(self)

    def asking_side(self) -> LocalAskingSide:
        return LocalAskingSide(self)

    def send_tasks(self, host: str, tasks: list[Task]) -> None:
        with self._lock:
            channel = self._agents.get(host)
        if channel is None:
            raise BusError(f"no agent of host {host} is here")
        channel.put(tasks)

    def send_results(self, results: list[Result]) -> None:
        with self._lock:
            channel = self._results
        if channel is None:
            raise BusError("no conductor is here")
        channel.put(results)

    def send_heartbeat(self, heartbeat: Heartbeat) -> None:
        with self._lock:
            channel = self._heartbeats
        if channel is None:
            raise BusError("no conductor is here")
        channel.put([heartbeat])

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        with self._lock:
            on_question = self._answerers.get(host)
        if on_question is None:
            raise NoAnswerError(f"no agent of host {host} is here")
        try:
            return self._questions.call(partial(on_question, question)).result(timeout)
        except TimeoutError as error:
            raise NoAnswerError(f"the agent of host {host} did not answer within {timeout:g} s") from error

    def attach_answerer(self, host: str, on_question: Callable[[Question], Answer]) -> None:
        with self._lock:
            self._answerers[host] = on_question

    def attach_agent(self, host: str, on_tasks: Callable[[list[Task]], None]) -> None:
        with self._lock:
            if host in self._agents:
                raise BusError(f"an agent of host {host} is here already")
            self._agents[host] = self._channel(f"tasks of {host}", on_tasks)

    def detach_agent(self, host: str) -> None:
        with self._lock:
            self._answerers.pop(host, None)
            channel = self._agents.pop(host, None)
        if channel is not None:
            channel.close()

    def attach_conductor(
        self, on_results: Callable[[list[Result]], None], on_heartbeat: Callable[[Heartbeat], None]
    ) -> None:
        def deliver_heartbeats(heartbeats: list[Heartbeat]) -> None:
            for heartbeat in heartbeats:
                on_heartbeat(heartbeat)

        with self._lock:
            if self._results is not None:
                raise BusError("a conductor is here already")
            self._results = self._channel("results", on_results)
            self._heartbeats = self._channel("heartbeats", deliver_heartbeats)

    def _channel(self, name: str, deliver: Callable[[list[T]], None]) -> Channel[T]:
        return Channel(name, deliver, self._capacity, self._patience, self._pool)

    def detach_conductor(self) -> None:
        with self._lock:
            results, self._results = self._results, None
            heartbeats, self._heartbeats = self._heartbeats, None
        if results is not None:
            results.close()
        if heartbeats is not None:
            heartbeats.close()


class LocalAskingSide:
    def __init__(self, bus: LocalBus) -> None:
        self._bus = bus

    def ask(self, host: str, question: Question, timeout: float) -> Answer:
        return self._bus.ask(host, question, timeout)

    def close(self) -> None:
        pass


class LocalConductorSide:
    def __init__(self, bus: LocalBus) -> None:
        self._bus = bus

    def cast(self, host: str, tasks: list[Task]) -> None:
        self._bus.send_tasks(host, tasks)

    def receive(
        self, on_results: Callable[[list[Result]], None], on_heartbeat: Callable[[Heartbeat], None]
    ) -> None:
        self._bus.attach_conductor(on_results, on_heartbeat)

    def close(self) -> None:
        self._bus.detach_conductor()


class LocalAgentSide:
    def __init__(self, bus: LocalBus) -> None:
        self._bus = bus
        self._hosts: list[str] = []

    def report(self, results: list[Result]) -> None:
        self._bus.send_results(results)

    def beat(self, heartbeat: Heartbeat) -> None:
        self._bus.send_heartbeat(heartbeat)

    def receive(self, host: str, on_tasks: Callable[[list[Task]], None]) -> None:
        self._bus.attach_agent(host, on_tasks)
        self._hosts.append(host)

    def answer(self, host: str, on_question: Callable[[Question], Answer]) -> None:
        self._bus.attach_answerer(host, on_question)

    def close(self) -> None:
        for host in self._hosts:
            self._bus.detach_agent(host)
        self._hosts.clear()
