"""A cloud whose parts all serve their metrics."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.lab.client.openstack import CLIENT, without_cloud
from tests.support import debian, postgres, rabbitmq
from tests.support.deployment import ADMIN, SHARED_FLAVOR, Deployment, Part, Shape
from tests.support.moorage import PROGRAMS
from tests.support.postgres import Postgres
from tests.support.processes import free_port
from tests.support.profiles import Settings
from tests.support.rabbitmq import RabbitMQ

SMALL_DISK = "host-2"
"""Whose agent keeps its journal on a disk of its own."""


class Watched(Deployment):
    def __init__(self, directory: Path, database: Postgres, broker: RabbitMQ) -> None:
        self.metrics_ports: dict[str, int] = {}
        super().__init__(directory, database, broker, Shape(apis=1, conductors=1))

    def further_conductor(self, number: int) -> Part:
        """Whoever asks for it starts it; it ends with the others."""
        self.conductors.append(self._conductor(number))
        return self.conductors[-1]

    def further_agent(self, host: str) -> Part:
        self.agents[host] = self._agent(host)
        return self.agents[host]

    def use_broker(self, broker: RabbitMQ) -> None:
        """Write every configuration file anew."""
        self._settings["DEFAULT"] = {"transport_url": broker.url}
        self._configure_all()

    def use_database(self, database: Postgres) -> None:
        self.database_url = database.database_url("moorage")
        self._configure_all()

    def _configure_all(self) -> None:
        self._configure_server("moorage", {})
        for number in range(1, len(self.conductors) + 1):
            self._conductor(number)
        for host in self.agents:
            self._agent(host)

    @property
    def targets(self) -> list[str]:
        ports = [self.placement.port, *(api.port for api in self.apis), *self.metrics_ports.values()]
        return [f"127.0.0.1:{port}" for port in ports]

    def _configure_server(self, name: str, more: Settings) -> Path:
        if "conductor" in more:
            quick = {
                "ask_again_seconds": "1",
                "audit_grace": "2",
                "metrics_port": self._metrics_port(name),
            }
            more = {**more, "conductor": {**more["conductor"], **quick}}
        return super()._configure_server(name, more)

    def configure_agent(self, host: str, more: Settings) -> Path:
        agent = {**more["agent"], "metrics_port": self._metrics_port(host)}
        return super().configure_agent(host, {**more, "agent": agent})

    def _metrics_port(self, name: str) -> str:
        return str(self.metrics_ports.setdefault(name, free_port()))

    def call(self, method: str, path: str, body: Any) -> Any:
        answer = requests.request(method, f"{self.urls[0]}/v2.1{path}", json=body, headers=ADMIN, timeout=30)
        assert answer.status_code in (200, 202), answer.text
        return answer.json() if answer.content else None

    def boot(self, name: str, **fields: Any) -> str:
        server = {"name": name, "flavorRef": SHARED_FLAVOR, "imageRef": self.image_id, "networks": "auto"}
        return str(self.call("POST", "/servers", {"server": {**server, **fields}})["server"]["id"])

    def status(self, uuid: str) -> str:
        return str(self.get(f"/v2.1/servers/{uuid}")["server"]["status"])

    def host_of(self, uuid: str) -> str:
        return str(self.get(f"/v2.1/servers/{uuid}")["server"]["OS-EXT-SRV-ATTR:host"])

    def typed(self, command: str) -> str:
        """What a command prints, typed by an operator in a terminal that is wide enough."""
        for name, port in self.metrics_ports.items():
            command = command.replace(
                f"http://{name}:{9105 if 'conductor' in name else 9106}", f"http://127.0.0.1:{port}"
            )
        environment = {
            **without_cloud(os.environ),
            "PATH": f"{PROGRAMS}:{CLIENT.bin()}:{os.environ['PATH']}",
            "OS_CLIENT_CONFIG_FILE": str(self.clouds_file(0)),
            "OS_CLOUD": "moorage",
            "COLUMNS": "250",
        }
        ran = subprocess.run(
            command.split(),
            env=environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return ran.stdout


@contextmanager
def watched_cloud(
    directory: Path, database: Postgres | None = None, *, with_small_disk: bool = False
) -> Iterator[Watched]:
    """With a broker of its own, and a database unless one is given; where there can be none, tests are
    skipped."""
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(rabbitmq.start())
        except debian.Unavailable as error:
            pytest.skip(str(error))
        if with_small_disk:
            stack.enter_context(small_disk(directory / SMALL_DISK))
        made = Watched(directory, database or stack.enter_context(postgres.start()), broker)
        stack.callback(made.stop)
        made.start()
        yield made


@contextmanager
def small_disk(directory: Path) -> Iterator[bool]:
    """Whether there is one: only root may mount anything."""
    directory.mkdir()
    if os.geteuid() != 0:
        yield False
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", directory], check=True)
    try:
        yield True
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def fill(directory: Path, spare: int) -> Path:
    """Up to so many bytes; remove what this answers with, and there is room again."""
    filling = directory / "filling"
    filling.write_bytes(b"\0" * (shutil.disk_usage(directory).free - spare))
    return filling
