"""Two hosts, a conductor and somebody who asks, on one real broker, and a Placement: hosts are kept apart, or
all is as open as without that."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from falcon.testing import TestClient
from kombu.connection import Connection
from oslo_config import cfg
from typer.testing import CliRunner

from moorage.bus import key_file
from moorage.bus.contract import Answer, Heartbeat, NoAnswerError, Question, Result, Task
from moorage.bus.messaging import MessagingAgentSide, MessagingConductorSide
from moorage.bus.messaging_questions import MessagingAskingSide
from moorage.bus.options import OPTIONS
from moorage.bus.oslo import set_defaults
from moorage.bus.queues import QueueNames
from moorage.cli.manage.manage import commands
from moorage.core import config, uuids
from moorage.http.caller import AGENT_ROLE
from moorage.placement import wsgi
from moorage.placement.service import PlacementService
from tests.support import moorage
from tests.support.processes import wait_until
from tests.support.rabbitmq import RabbitMQ

QUESTION = Question("server-2", "node-2", "console_log")
HOSTS = ("host-1", "host-2")


@dataclass
class Fleet:
    broker: RabbitMQ
    directory: Path
    isolated: bool
    exchange: str
    tasks: dict[str, list[Task]] = field(default_factory=lambda: {host: [] for host in HOSTS})
    results: list[Result] = field(default_factory=list)
    heartbeats: list[Heartbeat] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    heard: int = 0
    """So many questions had been heard before the last attempt."""
    answer: Callable[[Question], Answer] = lambda _question: Answer({"output": "true"})

    @property
    def names(self) -> QueueNames:
        return QueueNames(self.exchange)

    def conf(self, host: str | None = None) -> cfg.ConfigOpts:
        """Of the conductors, or of the agent of a host."""
        return config.read([str(path) for path in self.files(host)], [OPTIONS])

    def files(self, host: str | None = None) -> list[Path]:
        if host is None or not self.isolated:
            return [self.directory / "moorage.conf"]
        return [self.directory / "moorage.conf", self.directory / host / "here.conf"]

    def prepare(self) -> None:
        """As `docs/operate/security.md` says."""
        keys = self.directory / "master.keys"
        signing = "require" if self.isolated else "off"
        (self.directory / "moorage.conf").write_text(
            f"[DEFAULT]\ntransport_url = {self.broker.url}\n"
            f"[bus]\nexchange = {self.exchange}\nsend_retries = 1\nsigning = {signing}\nkeys_file = {keys}\n"
            f"[database]\nconnection = sqlite:///{self.directory / 'placement.sqlite'}\n"
            f"[auth]\nstrategy = basic\nbasic_auth_file = {self.directory / 'htpasswd'}\n"
            f"[placement]\ntree_owners = {signing}\n"
        )
        self.manage("agent", "add-key")
        self.manage("agent", "credentials", *HOSTS, "--directory", str(self.directory))
        for host in HOSTS:
            text = (self.directory / host / "agent.conf").read_text()
            here = text.replace("/etc/moorage/bus.keys", str(self.directory / host / "bus.keys"))
            (self.directory / host / "here.conf").write_text(here)
        if self.isolated:
            self.import_definitions()

    def open_placement(self) -> None:
        """With the users of the page: those of hosts are agents, the other one is an administrator."""
        moorage.sync_database(self.directory / "moorage.conf")
        for user in (*HOSTS, "admin"):
            words = ["--config-file", str(self.directory / "moorage.conf"), "auth", "set-password", user]
            words += ["--stdin", *(("--role", AGENT_ROLE) if user in HOSTS else ())]
            done = CliRunner().invoke(commands, words, input=f"{user}-secret\n", catch_exceptions=False)
            assert done.exit_code == 0, done.output
        conf = config.read([str(self.directory / "moorage.conf")], wsgi.OPTIONS)
        self._service = PlacementService.from_conf(conf)
        self._service.start()
        self.placement = TestClient(wsgi.build(conf, self._service))

    def login(self, user: str) -> dict[str, str]:
        """To Placement."""
        return {"Authorization": f"Basic {base64.b64encode(f'{user}:{user}-secret'.encode()).decode()}"}

    def manage(self, *arguments: str) -> dict[str, object]:
        given = ["--config-file", str(self.directory / "moorage.conf"), *arguments, "--json"]
        done = CliRunner().invoke(commands, given, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def import_definitions(self) -> None:
        path = self.directory / "definitions.json"
        subprocess.run(
            ["rabbitmqctl", "import_definitions", str(path)],
            env=self.broker.environment,
            check=True,
            capture_output=True,
            timeout=60,
        )

    def open(self) -> None:
        self.prepare()
        self.open_placement()
        self.conductor = MessagingConductorSide(self.conf())
        self.asking = MessagingAskingSide(self.conf())
        self.agents = {host: MessagingAgentSide(self.conf(host), host) for host in HOSTS}
        self.conductor.receive(self.results.extend, self.heartbeats.append)
        for host, side in self.agents.items():
            side.receive(host, self.tasks[host].extend)
            side.answer(host, self._answer)
            wait_until(lambda host=host: self._hears(host), f"{host} to be there", 60)  # type: ignore[misc]

    def _hears(self, host: str) -> bool:
        self.conductor.cast(host, [task(1)])
        return bool(self.tasks[host]) and self._answers(host)

    def _answers(self, host: str) -> bool:
        try:
            return self.asking.ask(host, QUESTION, 5) == Answer({"output": "true"})
        except NoAnswerError:
            return False

    def _answer(self, question: Question) -> Answer:
        self.questions.append(question)
        return self.answer(question)

    def close(self) -> None:
        for agent in self.agents.values():
            agent.close()
        self.asking.close()
        self.conductor.close()
        self._service.stop()

    def connect(self, host: str | None) -> Connection:
        """With what the agent of a host has; as an administrator of the broker if it is None."""
        conf = self.conf(host)
        set_defaults(conf)
        url = conf.transport_url.replace("rabbit://", "amqp://")
        return Connection(url, transport_options={"confirm_publish": True})  # type: ignore[no-untyped-call]

    def keys_of(self, host: str) -> dict[str, bytes]:
        return key_file.read(self.directory / host / "bus.keys")


def task(number: int, kind: str = "spawn") -> Task:
    return Task(number, f"server-{number}", kind, 1, "node")


def new(broker: RabbitMQ, directory: Path, *, isolated: bool) -> Fleet:
    return Fleet(broker, directory, isolated, f"bus-{uuids.generate()[:8]}")
