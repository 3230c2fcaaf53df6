"""Moorage in pieces: two Compute APIs, a Placement, two conductors, three agents; PostgreSQL and RabbitMQ.

Every part is a process that an operator would start, with a configuration file that they would write. Hosts
`host-1` and `host-2` have nodes that servers share; each node of `host-3` takes one server.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import requests
from openstack.config import OpenStackConfig
from openstack.connection import Connection

from moorage.cli.embedded import credentials
from moorage.cli.embedded.credentials import Endpoints
from moorage.drivers.fake.servers import FakeServer
from tests.support import moorage, postgres, rabbitmq
from tests.support.moorage import PROGRAMS
from tests.support.postgres import Postgres
from tests.support.processes import (
    Command,
    NotReadyError,
    Service,
    free_port,
    port_is_open,
    start_service,
    wait_until,
)
from tests.support.profiles import Settings, ini
from tests.support.rabbitmq import RabbitMQ
from tests.support.releases import launched

ADMIN = {"x-auth-token": "admin", "openstack-api-version": "compute 2.96"}
PLACEMENT_ADMIN = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
IMAGE = "cirros-0.6.3-x86_64-disk"
SHARED_FLAVOR, EXCLUSIVE_FLAVOR = "shared", "exclusive"
EXCLUSIVE_CLASS = "CUSTOM_BAREMETAL"
SHARED_HOSTS, EXCLUSIVE_HOST = ("host-1", "host-2"), "host-3"

LEASE_SECONDS = 5
SETTINGS: Settings = {
    "auth": {"strategy": "none"},
    "conductor": {"lease_seconds": str(LEASE_SECONDS), "ask_again_seconds": "5", "heartbeat_interval": "1"},
    "compute": {"service_down_time": "10", "workers": "1"},
    "quota": {"instances": "-1", "cores": "-1", "ram": "-1"},
    "placement": {"workers": "1"},
    "process": {"drain_seconds": "0"},
}
"""What takes half a minute by default takes seconds, so that a test need not wait for it."""

AGENT_SETTINGS = {"heartbeat_interval": "0.5", "inventory_interval": "1", "full_report_interval": "5"}


@dataclass
class Part:
    """One process of the deployment, which may die and come back."""

    name: str
    command: Sequence[str | Path]
    log: Path
    port: int = 0
    """0 for a part that nobody connects to."""
    service: Service | None = None
    source: Path | None = field(default=None, kw_only=True)
    """Of another release than this one."""

    def start(self, *, wait: bool = True) -> None:
        """Waits until it answers, if it is one that does."""
        assert self.service is None
        answers = (lambda: port_is_open(self.port)) if wait and self.port else (lambda: True)
        self.service = start_service(
            [*launched(self.source), *self.command], self.port, self.log, ready=answers, timeout=90
        )

    def end(self) -> int:
        """As an operator does; what it left with."""
        service = self._running()
        service.stop()
        self.service = None
        return int(service.process.returncode)

    def kill(self) -> None:
        self._running().kill()
        self.service = None

    def stall(self, seconds: float) -> None:
        """As on a machine that is suspended, or hopelessly busy."""
        self.freeze()
        time.sleep(seconds)
        self.thaw()

    def freeze(self) -> None:
        for pid in self._running().pids():
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self._running().pids():
            os.kill(pid, signal.SIGCONT)

    @property
    def ended_by_itself(self) -> bool:
        return self.service is not None and self.service.process.poll() is not None

    def _running(self) -> Service:
        assert self.service is not None, f"{self.name} does not run"
        return self.service


@dataclass(frozen=True)
class Shape:
    """How large the simulated hosts are, and how they fail."""

    shared_nodes: int = 4
    """Of each of the hosts whose nodes are shared."""
    exclusive_nodes: int = 8
    faults: str = ""
    """As `[fake] faults`."""
    apis: int = 2
    conductors: int = 2

    @property
    def hosts(self) -> tuple[str, ...]:
        return (*SHARED_HOSTS, EXCLUSIVE_HOST)

    @property
    def nodes(self) -> int:
        return len(SHARED_HOSTS) * self.shared_nodes + self.exclusive_nodes

    def of(self, host: str) -> Settings:
        """The sections that only this host's configuration has."""
        exclusive = host == EXCLUSIVE_HOST
        fake = {
            "nodes": str(self.exclusive_nodes if exclusive else self.shared_nodes),
            "resource_class": EXCLUSIVE_CLASS if exclusive else "",
            "faults": self.faults,
        }
        return {"agent": {}, "fake": fake}


class Neighbours:
    """The services beside a deployment. These are none: it has networks and images of its own, and whoever
    asks is its administrator."""

    token = "admin"
    """The administrator's."""

    def sections(self, placement_url: str) -> Settings:
        """What the configuration of each part says of them."""
        return {"placement_client": {"auth_type": "none", "endpoint": placement_url}}

    def server_sections(self) -> Settings:
        """What only those of the APIs, Placement and the conductors say."""
        return {}

    def agent_sections(self) -> Settings:
        """What only those of agents say."""
        return {}

    def seed(self, manage: Sequence[str | Path], urls: Mapping[str, str]) -> None:
        """Before the deployment starts. `urls` are those of its services, by type."""
        subprocess.run([*manage, "seed", "--images"], check=True, capture_output=True)

    def image_id(self, deployment: Deployment) -> str:
        images = deployment.get("/image/v2/images")["images"]
        return str(next(image["id"] for image in images if image["name"] == IMAGE))


class Deployment:
    """Written down first, then started. What it runs on is started before and outlives it."""

    def __init__(
        self,
        directory: Path,
        database: Postgres,
        broker: RabbitMQ,
        shape: Shape,
        neighbours: Neighbours | None = None,
        source: Path | None = None,
        ports: Mapping[str, int] | None = None,
    ) -> None:
        """`source` is that of another release, if it is one's; `ports` are those of parts, by name, that
        others know already."""
        self.directory = directory
        self.source = source
        self.neighbours = neighbours or Neighbours()
        self.database = database
        self.broker = broker
        self.shape = shape
        self.database_url = database.create_database("moorage")
        self.image_id = ""
        known = ports or {}
        port = known.get("placement") or free_port()
        self._settings: Settings = {
            **SETTINGS,
            "DEFAULT": {"transport_url": broker.url},
            **self.neighbours.sections(f"http://127.0.0.1:{port}"),
        }
        config = self._configure_server("moorage", {})
        self.config = config
        self.placement = self._server("placement", "moorage-placement", config, port)
        self.apis = [
            self._server(f"api-{number}", "moorage-api", config, known.get(f"api-{number}") or free_port())
            for number in range(1, shape.apis + 1)
        ]
        self.conductors = [self._conductor(number) for number in range(1, shape.conductors + 1)]
        self.agents = {host: self._agent(host) for host in shape.hosts}

    @property
    def parts(self) -> list[Part]:
        return [self.placement, *self.apis, *self.conductors, *self.agents.values()]

    @property
    def urls(self) -> list[str]:
        """The Compute APIs'."""
        return [f"http://127.0.0.1:{api.port}" for api in self.apis]

    @property
    def placement_url(self) -> str:
        return f"http://127.0.0.1:{self.placement.port}"

    def clouds_file(self, api: int) -> Path:
        """For clients that go by way of one of the APIs; the cloud is called `moorage`."""
        path = self.directory / f"clouds-{api}.yaml"
        endpoints = Endpoints(placement=self.placement_url, compute=self.urls[api])
        path.write_text(credentials.clouds_yaml(endpoints, None))
        return path

    def connect(self, api: int) -> Connection:
        """openstacksdk, by way of one of the APIs."""
        found = OpenStackConfig(config_files=[str(self.clouds_file(api))], load_envvars=False)
        return Connection(config=found.get_one("moorage"))

    def start(self) -> None:
        """All parts at once and in no order: each waits for those that it needs."""
        moorage.sync_database(self.config, self.source)
        services = {"compute": f"{self.urls[0]}/v2.1", "placement": self.placement_url}
        manage: Command = [*launched(self.source), PROGRAMS / "moorage-manage", "--config-file", self.config]
        self.neighbours.seed(manage, services)
        for part in self.parts:
            part.start(wait=False)
        self.wait_for_apis()
        self._make_flavors()
        self.image_id = self.neighbours.image_id(self)
        wait_until(lambda: self.hosts_up() == set(self.agents), "all hosts to be up", 120)
        wait_until(lambda: len(self.providers()) == self.shape.nodes, "all nodes in Placement", 60)

    def wait_for_apis(self) -> None:
        """All of them, however busy the machine is."""
        wait_until(self._all_listen, "the APIs", 120)

    def _all_listen(self) -> bool:
        """Raises if a part has ended: then it is in vain to wait."""
        dead = [part.name for part in self.parts if part.ended_by_itself]
        if dead:
            raise NotReadyError(f"ended: {', '.join(dead)}\n{self.logs()}")
        return all(port_is_open(server.port) for server in (self.placement, *self.apis))

    def stop(self) -> None:
        for part in self.parts:
            if part.service is not None:
                part.kill()

    def get(self, path: str, api: int = 0) -> Any:
        answer = requests.get(self.urls[api] + path, headers=self._as_admin(ADMIN), timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get_placement(self, path: str) -> Any:
        headers = self._as_admin(PLACEMENT_ADMIN)
        answer = requests.get(self.placement_url + path, headers=headers, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def _as_admin(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {**headers, "x-auth-token": self.neighbours.token}

    def hosts_up(self) -> set[str]:
        services = self.get("/v2.1/os-services?binary=nova-compute")["services"]
        return {service["host"] for service in services if service["state"] == "up"}

    def providers(self) -> list[str]:
        """The roots: neighbours may put children below."""
        listed = self.get_placement("/resource_providers")["resource_providers"]
        return [one["uuid"] for one in listed if one["parent_provider_uuid"] is None]

    def kept_by(self, host: str) -> list[FakeServer]:
        """What the host's driver has, in its own file: the truth about what runs."""
        path = self.directory / host / "fake-servers.sqlite"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file:
            rows = file.execute("SELECT server FROM servers").fetchall()
        return [msgspec.msgpack.decode(row[0], type=FakeServer) for row in rows]

    def logs(self, lines: int = 15) -> str:
        """The end of every log, without the lines that each request has: for a test that failed."""
        tails = []
        for part in self.parts:
            text = part.log.read_text(errors="replace") if part.log.exists() else ""
            told = [line for line in text.splitlines() if "moorage.http.entry" not in line]
            tails += [f"--- {part.name}", *told[-lines:]]
        return "\n".join(tails)

    def _configure(self, name: str, more: Settings) -> Path:
        path = self.directory / f"{name}.conf"
        path.write_text(ini({**self._settings, **more}))
        return path

    def _configure_server(self, name: str, more: Settings) -> Path:
        """As `_configure`, for a part that has the database."""
        database = {"database": {"connection": self.database_url}}
        return self._configure(name, {**database, **self.neighbours.server_sections(), **more})

    def _conductor(self, number: int) -> Part:
        """As if each were on a machine of its own; every second one does without Placement's service."""
        name = f"conductor-{number}"
        placement = "service" if number % 2 else "database"
        own = {**SETTINGS["conductor"], "host": name, "placement": placement}
        config = self._configure_server(name, {"conductor": own})
        return self._part(name, "moorage-conductor", config)

    def _agent(self, host: str) -> Part:
        """Its file has no database in it."""
        return self._part(host, "moorage-agent", self.configure_agent(host, self.shape.of(host)))

    def configure_agent(self, host: str, more: Settings) -> Path:
        """Write its file, or write it anew."""
        own = {**AGENT_SETTINGS, "host": host, "state_directory": str(self.directory / host)}
        told = {**self.neighbours.agent_sections(), **more}
        return self._configure(host, {**told, "agent": {**own, **more["agent"]}})

    def server(self, name: str, program: str, port: int) -> Part:
        """A further part, which has the database; whoever asks for it starts and ends it."""
        return self._server(name, program, self.config, port)

    def _server(self, name: str, program: str, config: Path, port: int) -> Part:
        return self._part(name, program, config, "--listen", "127.0.0.1", "--port", str(port), port=port)

    def _part(self, name: str, program: str, config: Path, *more: str, port: int = 0) -> Part:
        command: list[str | Path] = [PROGRAMS / program, "--config-file", config, *more]
        return Part(name, command, self.directory / f"{name}.log", port, source=self.source)

    def _make_flavors(self) -> None:
        nothing_else = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}
        self.make_flavor(SHARED_FLAVOR, {})
        self.make_flavor(EXCLUSIVE_FLAVOR, {**nothing_else, f"resources:{EXCLUSIVE_CLASS}": "1"})

    def make_flavor(self, name: str, extra_specs: dict[str, str]) -> None:
        flavor = {"id": name, "name": name, "vcpus": 1, "ram": 64, "disk": 1}
        self._post("/v2.1/flavors", {"flavor": flavor})
        if extra_specs:
            self._post(f"/v2.1/flavors/{name}/os-extra_specs", {"extra_specs": extra_specs})

    def _post(self, path: str, body: dict[str, Any]) -> None:
        answer = requests.post(self.urls[0] + path, json=body, headers=self._as_admin(ADMIN), timeout=30)
        assert answer.status_code == 200, answer.text


@contextmanager
def running(
    directory: Path,
    shape: Shape | None = None,
    neighbours: Neighbours | None = None,
    start_broker: Callable[[], AbstractContextManager[RabbitMQ]] = rabbitmq.room,
    source: Path | None = None,
    ports: Mapping[str, int] | None = None,
) -> Iterator[Deployment]:
    """A new cloud, with a database of its own, and with a broker, which is shared unless it is said how to
    start one; raises `debian.Unavailable` without one."""
    with start_broker() as broker, postgres.start() as database:
        deployment = Deployment(directory, database, broker, shape or Shape(), neighbours, source, ports)
        try:
            deployment.start()
            yield deployment
        except NotReadyError as error:
            error.add_note(deployment.logs())
            raise
        finally:
            deployment.stop()
