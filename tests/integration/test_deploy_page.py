"""docs/compute/deploy.md, done as it is written, on servers as Debian makes them: a server boots.

What is typed differs from the page only as the two tables below say. All else is taken literally: which
commands, in which order, with which files.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.lab.client.openstack import CLIENT, without_cloud
from tests.lab.keystone import service as keystone_service
from tests.lab.keystone.service import Keystone
from tests.support import debian_postgres, manual, rabbitmq
from tests.support.debian import Unavailable
from tests.support.debian_postgres import DebianPostgres
from tests.support.manual import Block
from tests.support.processes import Service, free_port, port_is_open, start_service, wait_until
from tests.support.rabbitmq import RabbitMQ

PAGE = "compute/deploy.md"
FOLLOWED = ("Install", "Configure", "Start")
"""The sections that lead to a cloud; later ones are variations."""

POOL_SIZE, WORKERS = 5, 2
AT_THE_MOST = WORKERS * (2 * POOL_SIZE + 1) + WORKERS * (2 * POOL_SIZE + 2) + (2 * POOL_SIZE + 3)
"""Connections to PostgreSQL of what the page starts, as the page reckons them."""

LEFT_OUT = {
    "python3 -m venv": "Moorage is installed where the tests run",
    "/opt/moorage/bin/pip install": "Moorage is installed where the tests run",
    "useradd": "a test leaves no account behind",
}
LOOKED_AT_UNTIL = {"openstack compute service list": "| up "}
"""Nobody is so quick that a host is up when they have just started its agent: they look again."""
SERVICES = ("moorage-placement", "moorage-api", "moorage-conductor", "moorage-agent")
"""They run until they are told to end."""


class Operator:
    """Somebody who reads a page, and types what it says."""

    def __init__(self, root: Path, database: DebianPostgres, broker: RabbitMQ, keystone: Keystone) -> None:
        self.database = database
        self._root = root
        self._ports = {name: free_port() for name in ("placement", "compute")}
        self.placement = f"http://127.0.0.1:{self._ports['placement']}"
        keystone_url = keystone.service.url
        self._instead = {
            "/opt/moorage": str(Path(sys.executable).parent.parent),
            "/etc/moorage": str(root / "etc"),
            "/var/lib/moorage": str(root / "lib"),
            "--mode 750 --group moorage": "--mode 750",
            "--mode 700 --owner moorage": "--mode 700",
            "db.example.com:5432": f"127.0.0.1:{database.port}",
            "rabbit.example.com:5672": f"127.0.0.1:{broker.port}",
            "https://keystone.example.com:5000": keystone_url,
            "https://placement.example.com": self.placement,
            "https://compute.example.com": f"http://127.0.0.1:{self._ports['compute']}",
            "listen = 10.0.0.5": "listen = 127.0.0.1",
            "port = 8778": f"port = {self._ports['placement']}",
            "port = 8774": f"port = {self._ports['compute']}",
        }
        self._environment = {
            **without_cloud(os.environ),
            **broker.environment,
            **database.environment,
            "PATH": f"{broker.environment['PATH']}:{CLIENT.bin()}",
            **{f"OS_{name.upper()}": value for name, value in keystone.admin.auth(keystone.url).items()},
            "OS_IDENTITY_API_VERSION": "3",
        }
        self.services: list[Service] = []
        self.typed: list[str] = []

    def follow(self, block: Block) -> str:
        """Do what a block says; what that printed."""
        if block.kind == "ini":
            path = Path(self._adapted(block.file))
            path.write_text(self._adapted(block.text))
            return ""
        return "".join(self.type(command) for command in block.commands)

    def type(self, command: str) -> str:
        if command.startswith(tuple(LEFT_OUT)):
            return ""
        self.typed.append(command)
        words = shlex.split(self._adapted(command))
        if words[0] == "export":
            name, _, value = words[1].partition("=")
            self._environment[name] = value.replace(f"${name}", self._environment.get(name, ""))
            return ""
        if words[0] in SERVICES:
            self._start(words)
            return ""
        printed = [self._run(words)]
        wanted = LOOKED_AT_UNTIL.get(command, "")

        def shows() -> bool:
            if wanted not in printed[-1]:
                printed.append(self._run(words))
            return wanted in printed[-1]

        wait_until(shows, f"{wanted!r} from {command}", 120)
        return printed[-1]

    def log(self) -> str:
        return "\n".join(f"--- {service.log.name}\n{service.log_tail()}" for service in self.services)

    def _adapted(self, text: str) -> str:
        for written, meant in self._instead.items():
            text = text.replace(written, meant)
        return text

    def _start(self, words: list[str]) -> None:
        part = words[0].removeprefix("moorage-")
        port = self._ports.get({"api": "compute"}.get(part, part), 0)
        answers = (lambda: port_is_open(port)) if port else (lambda: True)
        log = self._root / f"{part}.log"
        self.services.append(start_service(words, port, log, self._environment, answers, timeout=120))

    def _run(self, words: list[str]) -> str:
        ran = subprocess.run(
            words, env=self._environment, cwd="/", capture_output=True, text=True, check=False, timeout=300
        )
        assert ran.returncode == 0, f"{shlex.join(words)}: {ran.stdout}{ran.stderr}\n{self.log()}"
        return ran.stdout


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[Operator]:
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        keystone = pool.submit(keystone_service.start, tmp_path / "keystone")
        stack.callback(lambda: keystone.result().stop())
        try:
            broker = stack.enter_context(rabbitmq.start(configuration=""))
            database = stack.enter_context(debian_postgres.running())
        except Unavailable as error:
            pytest.skip(str(error))
        somebody = Operator(tmp_path, database, broker, keystone.result())
        yield somebody
        for service in reversed(somebody.services):
            service.stop()


def test_who_follows_the_page_boots_a_server(operator: Operator) -> None:
    printed = [operator.follow(block) for block in manual.blocks(PAGE) if block.section in FOLLOWED]
    assert [command.split()[0] for command in operator.typed if command.startswith(SERVICES)] == [*SERVICES]
    assert re.search(r"\| status +\| ACTIVE", printed[-1])
    assert operator.database.ask("SHOW timezone") != "UTC", "Debian's default is another name for it"
    taken = int(operator.database.ask("SELECT count(*) FROM pg_stat_activity WHERE usename = 'moorage'"))
    assert 0 < taken <= AT_THE_MOST < int(operator.database.ask("SHOW max_connections")) - 3
