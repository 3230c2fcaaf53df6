"""The two forms in which Moorage runs, with as many simulated nodes as are wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from moorage.db import engine
from tests.support import postgres, rabbitmq
from tests.support.moorage import PROGRAMS, configure, seed, sync_database
from tests.support.processes import (
    Service,
    cpu_seconds,
    free_port,
    port_is_open,
    process_tree,
    start_service,
    wait_until,
)
from tests.support.profiles import Settings, ini
from tests.support.wire import Wire

AGENTS = 3
UNLIMITED = {"instances": "-1", "cores": "-1", "ram": "-1"}


class Form(StrEnum):
    EMBEDDED = "embedded"
    SCALED = "scaled"
    SCALED_SERVICE = "scaled-service"
    """Its conductors ask Placement over HTTP."""


@dataclass(frozen=True)
class Site:
    """A running cloud, as the benchmark sees it."""

    compute_port: int
    metrics_ports: list[int]
    """Where the processes that schedule tell of it."""
    database: Engine
    services: list[Service]
    foundations: list[int] = field(default_factory=list)
    """The processes of the database and the broker."""

    def cpu_seconds(self) -> float:
        """Of everything that a boot keeps busy."""
        below = [pid for root in self.foundations for pid in process_tree(root)]
        return cpu_seconds([*below, *(pid for service in self.services for pid in service.pids())])

    def wait_for_nodes(self, count: int, timeout: float = 300.0) -> None:
        """Placement is told of nodes before the Compute side is, so these can be scheduled to."""
        query = sa.text("SELECT count(*) FROM nodes")
        wait_until(lambda: self._number(query) >= count, f"{count} nodes", timeout)

    def wait_for_builds(self, timeout: float, pause: float = 0.25) -> None:
        """Asking takes processor time from what is measured, so it is not done at once."""
        query = sa.text("SELECT count(*) FROM servers WHERE vm_state = 'building'")
        deadline = time.monotonic() + timeout
        time.sleep(pause)
        while self._number(query):
            if time.monotonic() > deadline:
                raise TimeoutError(f"servers still build after {timeout:.0f} s")
            time.sleep(pause)

    def _number(self, query: sa.TextClause) -> int:
        with self.database.connect() as connection:
            return int(connection.execute(query).scalar_one())


@contextmanager
def embedded(directory: Path, nodes: int) -> Iterator[Site]:
    """`moorage up`: one process, SQLite, one simulated host that has all the nodes."""
    data, placement, compute = directory / "data", free_port(), free_port()
    url = f"sqlite:///{data / 'moorage.sqlite'}"
    config = configure(directory, url, {"fake": {"nodes": str(nodes)}, "quota": UNLIMITED})
    command: list[str | Path] = [
        *(PROGRAMS / "moorage", "up", "--data", data, "--auth", "none", "--hosts", "1", "--config", config),
        *("--placement-port", str(placement), "--compute-port", str(compute)),
    ]
    with start_service(
        command, compute, directory / "up.log", ready=lambda: port_is_open(compute), timeout=120
    ) as service:
        site = Site(compute, [compute], engine.connect(url), [service])
        site.wait_for_nodes(nodes)
        yield site
        site.database.dispose()


def metrics(port: int) -> str:
    with Wire(port) as wire:
        return wire.get("/metrics").body.decode()


@contextmanager
def scaled(directory: Path, nodes: int, placement: str = "database") -> Iterator[Site]:
    """Processes of their own on PostgreSQL and RabbitMQ, as many as two cores can feed."""
    with rabbitmq.start() as broker, postgres.start() as server:
        parts = _Parts(directory, server.create_database("moorage"), broker.url, nodes, placement)
        try:
            yield parts.start([server.pid, broker.broker.pid])
        finally:
            parts.stop()


class _Parts:
    """A Placement, a Compute API, two conductors and three agents that share the nodes."""

    def __init__(
        self, directory: Path, database_url: str, broker_url: str, nodes: int, placement: str
    ) -> None:
        self._directory = directory
        self._conductors_ask = placement
        self._database_url = database_url
        self._nodes = nodes
        self._placement_port, self._compute_port = free_port(), free_port()
        self._metrics_ports = [free_port(), free_port()]
        self._services: list[Service] = []
        self._common: Settings = {
            "DEFAULT": {"transport_url": broker_url},
            "log": {"level": "WARNING"},
            "auth": {"strategy": "none"},
            "quota": UNLIMITED,
            "placement": {"workers": "1", "port": str(self._placement_port)},
            "compute": {"workers": "1", "port": str(self._compute_port)},
            "placement_client": {
                "auth_type": "none",
                "endpoint": f"http://127.0.0.1:{self._placement_port}",
            },
        }

    def start(self, foundations: list[int]) -> Site:
        database = {"database": {"connection": self._database_url}}
        config = self._configure("moorage", database)
        sync_database(config)
        seed(config)
        self._run("moorage-placement", config, self._placement_port)
        self._run("moorage-api", config, self._compute_port)
        for number, port in enumerate(self._metrics_ports):
            own = {"host": f"conductor-{number}", "metrics_port": str(port)}
            own["placement"] = self._conductors_ask
            self._run("moorage-conductor", self._configure(own["host"], {**database, "conductor": own}), port)
        for number, share in enumerate(_shares(self._nodes, AGENTS)):
            own = {"host": f"host-{number}", "state_directory": str(self._directory / f"host-{number}")}
            more = {"agent": own, "fake": {"nodes": str(share)}}
            self._run("moorage-agent", self._configure(own["host"], more), 0)
        site = Site(
            self._compute_port,
            self._metrics_ports,
            engine.connect(self._database_url),
            self._services,
            foundations,
        )
        site.wait_for_nodes(self._nodes)
        return site

    def stop(self) -> None:
        for service in reversed(self._services):
            service.stop()

    def _configure(self, name: str, more: Settings) -> Path:
        path = self._directory / f"{name}.conf"
        path.write_text(ini({**self._common, **more}))
        return path

    def _run(self, program: str, config: Path, port: int) -> None:
        log = self._directory / f"{len(self._services)}-{program}.log"
        ready = (lambda: port_is_open(port)) if port else (lambda: True)
        command: list[str | Path] = [PROGRAMS / program, "--config-file", config]
        self._services.append(start_service(command, port, log, ready=ready, timeout=120))


def _shares(total: int, parts: int) -> list[int]:
    return [total // parts + (1 if number < total % parts else 0) for number in range(parts)]


STARTERS: dict[Form, Callable[[Path, int], AbstractContextManager[Site]]] = {
    Form.EMBEDDED: embedded,
    Form.SCALED: scaled,
    Form.SCALED_SERVICE: partial(scaled, placement="service"),
}
