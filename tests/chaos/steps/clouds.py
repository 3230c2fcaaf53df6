"""Clouds whose processes come from a nursery: one process on SQLite, or in pieces on PostgreSQL and RabbitMQ.

Both have the same three hosts, the same Neutron, and keep servers that are deleted or shelved.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from moorage.drivers.fake.servers import FakeServer
from tests.chaos.steps.points import Points
from tests.support import postgres, rabbitmq, stage_neutron
from tests.support.deployment import Deployment, Neighbours, Part, Shape
from tests.support.postgres import Postgres
from tests.support.processes import free_port, is_alive, port_is_open, wait_until
from tests.support.profiles import Settings, ini
from tests.support.rabbitmq import RabbitMQ
from tests.support.stage_neutron import StageNeutron

ROOT = Path(__file__).parents[3]
HOSTS = ("fake-1", "fake-2", "fake-3")
_AGENT = {"heartbeat_interval": "1", "inventory_interval": "5", "full_report_interval": "60"}
_COMMON: Settings = {
    "compute": {
        "reclaim_interval": "3600",
        "shelved_offload_time": "-1",
        "allow_resize_to_same_host": "true",
        "service_down_time": "60",
        "workers": "1",
    },
    "conductor": {
        "lease_seconds": "30",
        "ask_again_seconds": "0.5",
        "threads": "1",
        "heartbeat_interval": "1",
        "audit_grace": "0",
        "audit_interval": "0",
    },
    "agent": _AGENT,
    "log": {"level": "WARNING"},
}


class Nursery:
    def __init__(self, log: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.chaos.steps.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log.open("ab"),
            cwd=ROOT,
            text=True,
        )

    def fork(self, **told: Any) -> int:
        """The process ID of a new part."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(told)}\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline())["pid"])

    def close(self) -> None:
        """With all that it has started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@dataclass
class ForkedPart(Part):
    """A part of a cloud that its nursery starts."""

    nursery: Nursery | None = None
    program: str = ""
    config: Path = Path()
    pid: int = 0

    def start(self, *, wait: bool = True) -> None:
        assert self.nursery is not None
        directory = self.log.parent
        self.pid = self.nursery.fork(
            part=self.program,
            config=str(self.config),
            log=str(self.log),
            directory=str(directory),
            port=self.port,
            after=self.pid,
        )
        if wait and self.port:
            wait_until(lambda: self.ended_by_itself or port_is_open(self.port), self.name, 60)

    @property
    def ended_by_itself(self) -> bool:
        return not is_alive(self.pid)


class Killable(Protocol):
    """What the tests have to know of a cloud."""

    points: Points
    neutron: StageNeutron
    directory: Path

    @property
    def parts(self) -> list[Part]: ...

    @property
    def database_url(self) -> str: ...

    @property
    def url(self) -> str:
        """Of the Compute API."""

    @property
    def placement_url(self) -> str: ...

    def of_host(self, host: str) -> Path:
        """Where its agent keeps what it knows."""


def kept_by(cloud: Killable, host: str) -> list[FakeServer]:
    """What the host's driver has, in its own file."""
    with closing(sqlite3.connect(cloud.of_host(host) / "fake-servers.sqlite")) as file:
        rows = file.execute("SELECT server FROM servers").fetchall()
    return [msgspec.msgpack.decode(row[0], type=FakeServer) for row in rows]


def open_tasks(cloud: Killable, host: str) -> list[str]:
    """Servers of which the host's journal has a task that is not done, or whose result is not said."""
    with closing(sqlite3.connect(cloud.of_host(host) / "journal.sqlite")) as file:
        return [row[0] for row in file.execute("SELECT server FROM tasks WHERE reported = 0")]


def _network(neutron_port: int) -> Settings:
    return {
        "network": {"provider": "neutron"},
        "neutron": {"auth_type": "none", "endpoint": f"http://127.0.0.1:{neutron_port}"},
    }


class WholeCloud:
    """`moorage up`: whatever dies, all of it dies."""

    def __init__(self, directory: Path, nursery: Nursery, neutron: StageNeutron, neutron_port: int) -> None:
        self.directory = directory
        self.points = Points(directory)
        self.neutron = neutron
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.placement_url = f"http://127.0.0.1:{port + 1}"
        self.database_url = f"sqlite:///{directory / 'data' / 'moorage.sqlite'}"
        config = directory / "moorage.conf"
        own: Settings = {"auth": {"strategy": "none"}, **_COMMON, **_network(neutron_port)}
        config.write_text(ini(own))
        self.parts: list[Part] = [
            ForkedPart("up", [], directory / "up.log", port, None, nursery, "up", config)
        ]

    def of_host(self, host: str) -> Path:
        return self.directory / "data" / "agents" / host


class ThreeHosts(Shape):
    @property
    def hosts(self) -> tuple[str, ...]:
        return HOSTS

    @property
    def nodes(self) -> int:
        return len(HOSTS)

    def of(self, host: str) -> Settings:
        return {"agent": {}}


class OnStage(Neighbours):
    """A Neutron that the test serves."""

    def __init__(self, port: int) -> None:
        self._port = port

    def sections(self, placement_url: str) -> Settings:
        return {**super().sections(placement_url), **_COMMON, **_network(self._port)}

    def seed(self, manage: Sequence[str | Path], urls: Mapping[str, str]) -> None:
        """With flavors, as `moorage up` has them."""
        subprocess.run([*manage, "seed"], check=True, capture_output=True)


class PiecesCloud(Deployment):
    """Each process by itself; conductors ask Placement over HTTP."""

    def __init__(
        self,
        directory: Path,
        database: Postgres,
        broker: RabbitMQ,
        nursery: Nursery,
        neutron: StageNeutron,
        neutron_port: int,
    ) -> None:
        self._nursery = nursery  # before parts are made
        self.points = Points(directory)
        self.neutron = neutron
        shape = ThreeHosts(apis=1, conductors=1)
        super().__init__(directory, database, broker, shape, OnStage(neutron_port))

    def _configure_server(self, name: str, more: Settings) -> Path:
        own: Settings = {"images": {"directory": str(self.directory / "images")}}
        return super()._configure_server(name, {**own, **more})

    def configure_agent(self, host: str, more: Settings) -> Path:
        images: Settings = {"glance": {"auth_type": "none", "endpoint": f"{self.urls[0]}/image"}}
        return super().configure_agent(host, {**images, **more, "agent": {**_AGENT, **more["agent"]}})

    def _conductor(self, number: int) -> Part:
        """It asks Placement's service."""
        return self._part(f"conductor-{number}", "moorage-conductor", self.config)

    def _part(self, name: str, program: str, config: Path, *more: str, port: int = 0) -> Part:
        log = self.directory / f"{name}.log"
        return ForkedPart(name, [], log, port, None, self._nursery, program, config)

    @property
    def url(self) -> str:
        return self.urls[0]

    def of_host(self, host: str) -> Path:
        return self.directory / host


@contextmanager
def whole(directory: Path) -> Iterator[WholeCloud]:
    """On SQLite."""
    with _prepared(directory) as (nursery, neutron, port):
        cloud = WholeCloud(directory, nursery, neutron, port)
        cloud.parts[0].start()
        yield cloud


@contextmanager
def in_pieces(directory: Path) -> Iterator[PiecesCloud]:
    """On PostgreSQL; raises `debian.Unavailable` without a RabbitMQ."""
    with (
        rabbitmq.room() as broker,
        postgres.start() as database,
        _prepared(directory) as (nursery, neutron, port),
    ):
        cloud = PiecesCloud(directory, database, broker, nursery, neutron, port)
        cloud.start()
        yield cloud


@contextmanager
def _prepared(directory: Path) -> Iterator[tuple[Nursery, StageNeutron, int]]:
    (directory / "buttons").mkdir()
    nursery, neutron = Nursery(directory / "nursery.log"), StageNeutron()
    try:
        with stage_neutron.serving(neutron) as port:
            yield nursery, neutron, port
    finally:
        nursery.close()


CLOUDS: Mapping[str, Any] = {"sqlite": whole, "postgresql": in_pieces}
