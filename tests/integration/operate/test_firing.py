"""A real Prometheus watches a cloud in which one thing after the other breaks: it says which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.support import debian, postgres, prometheus, rabbitmq
from tests.support.deployment import ADMIN, SHARED_FLAVOR, Deployment, Shape
from tests.support.postgres import Postgres
from tests.support.processes import free_port, wait_until
from tests.support.profiles import Settings
from tests.support.prometheus import Prometheus
from tests.support.rabbitmq import RabbitMQ

PATIENCE = 90.0


class Watched(Deployment):
    """Every part serves its metrics."""

    def __init__(self, directory: Path, database: Postgres, broker: RabbitMQ) -> None:
        self.metrics_ports: list[int] = []
        super().__init__(directory, database, broker, Shape(apis=1, conductors=1))

    @property
    def targets(self) -> list[str]:
        ports = [self.placement.port, *(api.port for api in self.apis), *self.metrics_ports]
        return [f"127.0.0.1:{port}" for port in ports]

    def _configure_server(self, name: str, more: Settings) -> Path:
        quick = (
            {"ask_again_seconds": "1", "metrics_port": self._metrics_port()} if "conductor" in more else {}
        )
        own: Settings = {"conductor": {**more["conductor"], **quick}} if quick else {}
        return super()._configure_server(name, {**more, **own})

    def configure_agent(self, host: str, more: Settings) -> Path:
        agent = {**more["agent"], "metrics_port": self._metrics_port()}
        return super().configure_agent(host, {**more, "agent": agent})

    def _metrics_port(self) -> str:
        self.metrics_ports.append(free_port())
        return str(self.metrics_ports[-1])

    def boot(self, **fields: Any) -> None:
        server = {"name": "s", "flavorRef": SHARED_FLAVOR, "imageRef": self.image_id, "networks": "auto"}
        body = {"server": {**server, **fields}}
        answer = requests.post(f"{self.urls[0]}/v2.1/servers", json=body, headers=ADMIN, timeout=30)
        assert answer.status_code == 202, answer.text


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(rabbitmq.start())
        except debian.Unavailable as error:
            pytest.skip(str(error))
        database = stack.enter_context(postgres.start())
        made = Watched(tmp_path_factory.mktemp("watched"), database, broker)
        stack.callback(made.stop)
        made.start()
        yield made


@pytest.fixture(scope="module")
def watcher(cloud: Watched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    directory = tmp_path_factory.mktemp("prometheus")
    try:
        with prometheus.watching(directory, cloud.targets) as running:
            wait_until(lambda: len(running.seen()) == len(cloud.targets), "all parts to be seen", PATIENCE)
            yield running
    except debian.Unavailable as error:
        pytest.skip(str(error))


def fires(watcher: Prometheus, alert: str) -> None:
    wait_until(lambda: alert in watcher.firing(), alert, PATIENCE)


def ends(watcher: Prometheus, alert: str) -> None:
    wait_until(lambda: alert not in watcher.firing(), f"the end of {alert}", PATIENCE)


def test_nothing_fires_while_all_is_well(cloud: Watched, watcher: Prometheus) -> None:
    """The conductor's first look at hosts is up to 15 seconds away."""
    cloud.boot()
    wait_until(lambda: not watcher.firing(), "all alerts to end", PATIENCE)


def test_a_host_that_hangs_fires(cloud: Watched, watcher: Prometheus) -> None:
    cloud.agents["host-2"].freeze()
    fires(watcher, "MoorageHostsDown")
    cloud.agents["host-2"].thaw()
    ends(watcher, "MoorageHostsDown")


def test_an_operation_that_does_not_come_forward_fires(cloud: Watched, watcher: Prometheus) -> None:
    cloud.boot(metadata={"fake:spawn": "hang"}, availability_zone="nova:host-1")
    fires(watcher, "MoorageOperationsStuck")


def test_a_placement_that_is_away_fires(cloud: Watched, watcher: Prometheus) -> None:
    cloud.placement.kill()
    fires(watcher, "MooragePlacementUnreachable")
    cloud.placement.start()


def test_conductors_that_are_away_fire(cloud: Watched, watcher: Prometheus) -> None:
    cloud.conductors[0].kill()
    fires(watcher, "MoorageNoConductor")
    cloud.conductors[0].start()
    ends(watcher, "MoorageNoConductor")


def test_a_broker_that_is_away_fires(cloud: Watched, watcher: Prometheus) -> None:
    """Last, since nobody starts it again."""
    cloud.broker.stop()
    fires(watcher, "MoorageBrokerUnreachable")
