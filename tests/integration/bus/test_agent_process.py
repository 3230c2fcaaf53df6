"""`moorage-agent` as an operator runs it: it is killed at bad moments, and nothing gets lost."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import requests
from oslo_config import cfg

from moorage.bus.contract import Heartbeat, Result, Task
from moorage.bus.messaging import MessagingConductorSide
from moorage.drivers.contract import ServerSpec
from tests.support import moorage
from tests.support.processes import Command, Service, free_port, start_service, wait_until
from tests.support.rabbitmq import RabbitMQ

HEADERS = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}


class Rig:
    """Placement, an agent, and a conductor that only gives orders and listens."""

    def __init__(self, directory: Path, placement: Service, broker_url: str, conf: cfg.ConfigOpts) -> None:
        self._directory = directory
        self._placement = placement
        self.metrics_port = free_port()
        self._config = directory / "agent.conf"
        self._config.write_text(
            f"[DEFAULT]\ntransport_url = {broker_url}\n"
            f"[bus]\nexchange = {conf.bus.exchange}\n"
            f"[placement_client]\nauth_type = none\nendpoint = {placement.url}\n"
            f"[agent]\nheartbeat_interval = 0.3\nstate_directory = {directory / 'state'}\n"
            f"metrics_port = {self.metrics_port}\n"
            "[fake]\nnodes = 3\n"
        )
        self.results: list[Result] = []
        self.heartbeats: list[Heartbeat] = []
        self.conductor = MessagingConductorSide(conf)
        self.conductor.receive(self.results.extend, self.heartbeats.append)

    def start(self) -> Service:
        before = len(self.heartbeats)
        command: Command = [
            moorage.PROGRAMS / "moorage-agent",
            "--config-file",
            self._config,
            "--host",
            "host-1",
        ]
        return start_service(
            command, 0, self._directory / "agent.log", ready=lambda: len(self.heartbeats) > before
        )

    def spawns(self, first: int, last: int) -> list[Task]:
        node = next(beat.nodes for beat in self.heartbeats if beat.nodes)[0].uuid
        slow = {"fake:spawn": "delay=0.5"}
        specs = [
            ServerSpec(f"server-{n}", "s", "p", "u", node, {}, metadata=slow) for n in range(first, last)
        ]
        return [
            Task(first + index, spec.uuid, "spawn", 1, node, msgspec.to_builtins(spec))
            for index, spec in enumerate(specs)
        ]

    def providers(self) -> int:
        reply = requests.get(f"{self._placement.url}/resource_providers", headers=HEADERS, timeout=10)
        return len(reply.json()["resource_providers"])

    def finished(self) -> set[str]:
        return {result.server_uuid for result in self.results if result.ok}

    def seen(self) -> set[str]:
        return {uuid for beat in self.heartbeats for uuid in beat.observed}


@pytest.fixture
def rig(tmp_path: Path, sqlite_url: str, broker: RabbitMQ, conf: cfg.ConfigOpts) -> Iterator[Rig]:
    config = moorage.configure(tmp_path / "placement", sqlite_url)
    moorage.sync_database(config)
    with moorage.start(config, workers=1) as placement:
        made = Rig(tmp_path, placement, broker.url, conf)
        yield made
        made.conductor.close()


def test_it_reports_its_nodes_and_ends_cleanly(rig: Rig) -> None:
    with rig.start() as agent:
        wait_until(lambda: rig.providers() == 3, "the inventory", 20)
        metrics = requests.get(f"http://127.0.0.1:{rig.metrics_port}/metrics", timeout=10).text
        assert "moorage_agent_nodes_reported_total 3.0" in metrics
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(20) == 0


def test_killed_in_the_middle_it_does_everything_once_it_is_back(rig: Rig) -> None:
    with rig.start() as agent:
        rig.conductor.cast("host-1", rig.spawns(1, 81))
        wait_until(lambda: bool(rig.results), "the first results", 20)
        agent.kill()
        assert len(rig.finished()) < 80
        rig.conductor.cast("host-1", rig.spawns(81, 101))  # waits in its queue
    with rig.start():
        wait_until(lambda: len(rig.finished()) == 100, "all results", 40)
        wait_until(lambda: len(rig.seen()) == 100, "all servers", 20)
        before = len(rig.results)
        rig.conductor.cast("host-1", rig.spawns(1, 11))  # asked again: the same answers, at once
        wait_until(lambda: len(rig.results) >= before + 10, "the answers", 5)
        assert all(result.ok for result in rig.results)


def test_without_a_broker_it_waits_and_can_be_ended(tmp_path: Path) -> None:
    config = tmp_path / "agent.conf"
    config.write_text(
        "[DEFAULT]\ntransport_url = rabbit://guest:guest@127.0.0.1:1/\n"
        "[placement_client]\nauth_type = none\nendpoint = http://127.0.0.1:1\n"
        f"[agent]\nstate_directory = {tmp_path / 'state'}\n"
    )
    path = tmp_path / "log"
    with path.open("wb") as log:
        command = [str(moorage.PROGRAMS / "moorage-agent"), "--config-file", str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    wait_until(lambda: "no heartbeat could be sent" in path.read_text(), "the agent", 40)
    assert process.poll() is None
    process.terminate()
    assert process.wait(30) == 0


def test_a_configuration_without_placement_is_told_in_a_sentence(tmp_path: Path) -> None:
    config = tmp_path / "agent.conf"
    config.write_text(f"[agent]\nstate_directory = {tmp_path / 'state'}\n")
    command = [str(moorage.PROGRAMS / "moorage-agent"), "--config-file", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1
    assert "placement_client" in run.stderr
    assert "Traceback" not in run.stderr
