"""A small cloud in pieces whose operator follows `docs/operate/security.md`: what is done by hand there.

Each machine has its own copy of each file, as on the page: what was not brought there is not known there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
from typer.testing import CliRunner

from moorage.bus.messaging_queues import RabbitQueues
from moorage.bus.options import OPTIONS
from moorage.cli.manage.manage import commands
from moorage.core import config, uuids
from tests.support.deployment import ADMIN, SHARED_FLAVOR, Deployment, Neighbours, Part, Shape
from tests.support.postgres import Postgres
from tests.support.processes import NotReadyError, free_port, wait_until
from tests.support.profiles import Settings, ini
from tests.support.rabbitmq import RabbitMQ

HOST = "host-1"
PATIENCE: Settings = {"conductor": {"ask_again_seconds": "15"}, "compute": {"service_down_time": "30"}}
"""With a host that nobody believes, for as long as a busy machine needs to have a look at it."""
EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


class OneHost(Shape):
    @property
    def hosts(self) -> tuple[str, ...]:
        return (HOST,)

    @property
    def nodes(self) -> int:
        return self.shared_nodes


class OwnExchange(Neighbours):
    """Users of a broker are its own, not those of a virtual host: their names come from the exchange."""

    def __init__(self) -> None:
        self.exchange = f"keyed-{uuids.generate()[:8]}"

    def sections(self, placement_url: str) -> Settings:
        return {**super().sections(placement_url), "bus": {"exchange": self.exchange}}


class KeyedCloud:
    """A conductor, an API and the agent of one host. They have one user of RabbitMQ, and no keys."""

    def __init__(self, directory: Path, database: Postgres, broker: RabbitMQ) -> None:
        neighbours = OwnExchange()
        self._broker = broker
        self.everybody, self.masters_user = (f"{neighbours.exchange}-{name}" for name in ("all", "masters"))
        self._import_users(directory / "users.json")
        shape = OneHost(apis=1, conductors=1, shared_nodes=1)
        self.deployment = Deployment(directory, database, broker, shape, neighbours)
        self.conductor, self.api = self.deployment.conductors[0], self.deployment.apis[0]
        self.agent = self.deployment.agents[HOST]
        self.masters = [self.conductor, self.api]
        self.credentials = directory / "credentials"
        self.host_keys = self.machine(self.agent) / "bus.keys"
        for part in (self.conductor, self.api, self.agent):
            self.machine(part).mkdir()
            part.command = [*part.command, "--config-file", self.machine(part) / "own.conf"]
        self.conductor.port, self.agent.port = free_port(), free_port()
        for part in (self.conductor, self.api, self.agent):
            self.configure(part, "off", self.everybody)

    def machine(self, part: Part) -> Path:
        """What stands for /etc/moorage there."""
        return self.deployment.directory / f"machine-{part.name}"

    def configure(self, part: Part, signing: str, user: str | None = None) -> None:
        """What the page has for this machine's files; `user` is RabbitMQ's that all had before, if it is not
        over with that yet."""
        section = "agent" if part is self.agent else "conductor"
        own: Settings = {**PATIENCE, section: {**PATIENCE.get(section, {}), "metrics_port": str(part.port)}}
        if part is self.agent and user is None:
            given = (self.credentials / HOST / "agent.conf").read_text()
            more = given.replace("/etc/moorage", str(self.machine(part)))
            more = more.replace("signing = require", f"signing = {signing}")
        else:
            url = self._broker.url.replace("guest:guest", f"{user or self.masters_user}:secret")
            bus = {"signing": signing}
            if part is not self.agent:
                bus["keys_file"] = str(self.machine(part) / "master.keys")
            more = ini({"DEFAULT": {"transport_url": url}, "bus": bus})
        (self.machine(part) / "own.conf").write_text(ini(own) + more)

    def restart(self, part: Part) -> None:
        """As an operator does, who waits until it is at work again."""
        assert part.end() == 0, self.deployment.logs()
        part.start()
        if part is self.agent:
            wait_until(self._is_heard, "the agent to listen", 60)

    def _is_heard(self) -> bool:
        """Tasks would wait for it, but questions don't."""
        files = [str(word) for word in self.conductor.command[1:] if word != "--config-file"]
        with closing(RabbitQueues(config.read(files, [OPTIONS]))) as queues:
            return sum(queue.consumers > 0 for queue in queues.of_host(HOST)) >= 2

    def manage(self, *arguments: str) -> Any:
        """`moorage-manage agent`, on the conductor's machine."""
        files = [str(word) for word in self.conductor.command[1:]]
        done = CliRunner().invoke(commands, [*files, "agent", *arguments, "--json"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def make_credentials(self, *more: str) -> None:
        self.manage("credentials", HOST, "--directory", str(self.credentials), *more)

    def copy_master_keys(self) -> None:
        shutil.copy(self.machine(self.conductor) / "master.keys", self.machine(self.api) / "master.keys")

    def copy_host_keys(self) -> None:
        shutil.copy(self.credentials / HOST / "bus.keys", self.host_keys)

    def told_keys(self, part: Part) -> str:
        """Those that it took up last, as its log says."""
        told = [line for line in part.log.read_text().splitlines() if "the keys are now those" in line]
        return told[-1].rpartition(" has: ")[2] if told else ""

    def rabbitmqctl(self, *words: str) -> None:
        subprocess.run(
            ["rabbitmqctl", *words],
            env=self._broker.environment,
            check=True,
            capture_output=True,
            timeout=120,
        )

    def _import_users(self, path: Path) -> None:
        names, room = (self.everybody, self.masters_user), self._broker.virtual_host
        made = {
            "users": [{"name": name, "password": "secret", "tags": ""} for name in names],
            "permissions": [{"user": name, "vhost": room, **EVERYTHING} for name in names],
        }
        path.write_text(json.dumps(made))
        self.rabbitmqctl("import_definitions", str(path))

    def counted(self, part: Part, metric: str) -> dict[str, float]:
        """By labels."""
        text = requests.get(f"http://127.0.0.1:{part.port}/metrics", timeout=30).text
        lines = (line.rpartition(" ") for line in text.splitlines() if line.startswith(metric))
        return {name.removeprefix(metric): float(value) for name, _, value in lines}

    def all_counted(self, metric: str) -> dict[str, dict[str, float]]:
        """Where it is not zero."""
        return {
            part.name: found
            for part in (*self.masters, self.agent)
            if (found := {name: value for name, value in self.counted(part, metric).items() if value})
        }


@dataclass
class User:
    """Boots servers, reads their consoles and deletes them: by itself, or by a thread until it is enough."""

    cloud: KeyedCloud
    rounds: int = 0
    failures: list[str] = field(default_factory=list)
    _enough: threading.Event = field(default_factory=threading.Event)

    def boot(self, **metadata: str) -> str:
        server = {
            "name": "server",
            "imageRef": self.cloud.deployment.image_id,
            "flavorRef": SHARED_FLAVOR,
            "networks": "auto",
            "metadata": metadata,
        }
        told = self._call("POST", "", {"server": server})
        assert told.status_code == 202, told.text
        return str(told.json()["server"]["id"])

    def show(self, uuid: str) -> dict[str, Any]:
        found: dict[str, Any] = self._call("GET", f"/{uuid}").json()["server"]
        return found

    def await_active(self, uuid: str) -> None:
        wait_until(lambda: self.show(uuid)["status"] in ("ACTIVE", "ERROR"), f"server {uuid}", 90)
        found = self.show(uuid)
        assert found["status"] == "ACTIVE", found

    def console(self, uuid: str) -> requests.Response:
        return self._call("POST", f"/{uuid}/action", {"os-getConsoleOutput": {}})

    def read_console(self, uuid: str) -> None:
        told = self.console(uuid)
        assert told.status_code == 200, told.text
        assert uuid in told.json()["output"]

    def delete(self, uuid: str) -> None:
        assert self._call("DELETE", f"/{uuid}").status_code == 204
        wait_until(lambda: self._call("GET", f"/{uuid}").status_code == 404, f"{uuid} to go", 90)

    def life(self) -> None:
        uuid = self.boot()
        self.await_active(uuid)
        self.read_console(uuid)
        self.delete(uuid)
        self.rounds += 1

    def await_rounds(self) -> None:
        """One that began and ended after this call, at the least."""
        enough = self.rounds + 2
        wait_until(lambda: self.rounds >= enough or bool(self.failures), "boots to go on", 120)

    def _work(self) -> None:
        while not self._enough.is_set():
            try:
                self.life()
            except (AssertionError, NotReadyError, requests.RequestException) as error:
                self.failures.append(str(error))
                return

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._enough.set()
        self._thread.join()

    def _call(self, method: str, path: str, body: Any = None) -> requests.Response:
        url = f"{self.cloud.deployment.urls[0]}/v2.1/servers{path}"
        return requests.request(method, url, json=body, headers=ADMIN, timeout=30)
