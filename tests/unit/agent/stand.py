"""An executor on a real journal and the fake driver, and what it says to the conductors."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec

from moorage.agent.executor import Executor
from moorage.agent.journal import Journal
from moorage.bus.contract import BusError, Result, Task
from moorage.drivers.contract import ServerSpec
from moorage.drivers.fake.driver import FakeDriver, FakeSettings
from tests.support.processes import wait_until


class Stand:
    """One life of an agent; make another one on the same directory for its next life."""

    def __init__(self, directory: Path, settings: FakeSettings | None = None, threads: int = 4) -> None:
        self.driver = FakeDriver("host-1", settings or FakeSettings(), directory)
        self.journal = Journal(directory / "journal.sqlite")
        self.results: list[Result] = []
        self.batches = 0
        self.bus_is_down = False
        self._lock = threading.Lock()
        self.executor = Executor(self.driver, self.journal, self._send, threads)
        self.executor.start()

    def _send(self, results: list[Result]) -> None:
        if self.bus_is_down:
            raise BusError("the bus is down")
        with self._lock:
            self.results.extend(results)
            self.batches += 1

    def task(
        self, kind: str, server: str = "server-1", operation: int = 1, attempt: int = 1, **metadata: str
    ) -> Task:
        node = self.driver.nodes()[0].uuid
        payload: dict[str, Any] = {}
        if kind == "spawn":
            asked = {f"fake:{step}": text for step, text in metadata.items()}
            spec = ServerSpec(server, "s", "p", "u", node, {}, metadata=asked)
            payload = msgspec.to_builtins(spec)
        return Task(operation, server, kind, attempt, node, payload)

    def do(self, *tasks: Task) -> None:
        self.executor.submit(tasks)

    def wait_for(self, count: int, timeout: float = 10.0) -> list[Result]:
        wait_until(lambda: len(self.results) >= count, f"{count} results", timeout)
        return self.results

    def wait_idle(self) -> None:
        wait_until(lambda: not self.executor.busy(), "the executor to be idle", 10)

    def end(self) -> None:
        self.driver.close()
        self.executor.stop()
        self.journal.close()
