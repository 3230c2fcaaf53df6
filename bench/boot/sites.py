"""The two forms in which Moorage runs, with as many simulated nodes as are wanted."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from moorage.db import engine
from tests.support.moorage import configure
from tests.support.processes import Service, cpu_seconds, free_port, port_is_open, start_service, wait_until
from tests.support.wire import Wire

MOORAGE = Path(sys.executable).parent / "moorage"
UNLIMITED = {"instances": "-1", "cores": "-1", "ram": "-1"}


class Form(StrEnum):
    EMBEDDED = "embedded"
    SCALED = "scaled"


@dataclass(frozen=True)
class Site:
    """A running cloud, as the benchmark sees it."""

    compute_port: int
    metrics_ports: list[int]
    """Where the processes that schedule tell of it."""
    database: Engine
    services: list[Service]

    def cpu_seconds(self) -> float:
        return cpu_seconds([pid for service in self.services for pid in service.pids()])

    def wait_for_nodes(self, count: int, timeout: float = 300.0) -> None:
        """Placement is told of nodes before the Compute side is, so these can be scheduled to."""
        query = sa.text("SELECT count(*) FROM nodes")
        wait_until(lambda: self._number(query) >= count, f"{count} nodes", timeout)

    def wait_for_builds(self, timeout: float) -> None:
        query = sa.text("SELECT count(*) FROM servers WHERE vm_state = 'building'")
        deadline = time.monotonic() + timeout
        while self._number(query):
            if time.monotonic() > deadline:
                raise TimeoutError(f"servers still build after {timeout:.0f} s")
            time.sleep(0.25)

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
        *(MOORAGE, "up", "--data", data, "--auth", "none", "--hosts", "1", "--config", config),
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


STARTERS = {Form.EMBEDDED: embedded}
