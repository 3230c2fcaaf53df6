"""A process that is restarted loses no request of clients that keep their connections."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support import debian, haproxy, moorage
from tests.support.keep_alive_clients import KeepAliveClients, Request
from tests.support.moorage import PROGRAMS
from tests.support.processes import Service, free_port, is_alive, port_is_open, start_service, wait_until
from tests.support.profiles import ini

ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
ROUNDS = int(os.environ.get("MOORAGE_RESTARTS", "1"))
DRAIN = float(os.environ.get("MOORAGE_DRAIN_SECONDS", "1"))
"""0 shows what it is for: requests are lost."""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("restarts")
    process = {"drain_seconds": str(DRAIN), "grace_seconds": "20"}
    found = moorage.configure(directory, f"sqlite:///{directory / 'data.sqlite'}", {"process": process})
    moorage.sync_database(found)
    return found


def create(number: int) -> Request:
    """Sent twice, it is refused the second time: the name is taken."""
    body = f'{{"name": "provider-{number}"}}'.encode()
    return Request("POST", "/resource_providers", body, {**ADMIN, "Content-Type": "application/json"})


def create_other(number: int) -> Request:
    return create(number + 1_000_000)


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/readyz", timeout=5).status_code == 200
    except requests.RequestException:
        return False


class Replica:
    """One of the processes behind the load balancer."""

    def __init__(self, config: Path, name: str) -> None:
        self._config = config
        self.name = name
        self.port = free_port()
        self.service = self._start()

    def _start(self) -> Service:
        return moorage.start(self._config, workers=1, port=self.port)

    def restart(self) -> None:
        self.service.process.send_signal(signal.SIGTERM)
        assert self.service.process.wait(30) == 0, self.service.log_tail()
        self.service = self._start()


@pytest.fixture
def replicas(config: Path) -> Iterator[list[Replica]]:
    found = [Replica(config, name) for name in ("one", "two")]
    yield found
    for replica in found:
        replica.service.kill()


def test_no_request_is_lost_behind_a_load_balancer(replicas: list[Replica], tmp_path: Path) -> None:
    servers = {replica.name: replica.port for replica in replicas}
    try:
        with haproxy.in_front_of(tmp_path, {"placement": servers}) as front:
            wait_until(lambda: front.up("placement") == set(servers), "both to be up", 30)
            url = front.url("placement")
            with KeepAliveClients([url], create, clients=6, per_second=60) as load:
                for _ in range(ROUNDS):
                    for replica in replicas:
                        replica.restart()
                        wait_until(lambda: front.up("placement") == set(servers), "both to be up", 30)
                wait_until(lambda: load.sent.answers.total() > 50, "some answers", 30)
            kept = requests.get(f"{url}/resource_providers", headers=ADMIN, timeout=30).json()
    except debian.Unavailable as reason:
        pytest.skip(str(reason))
    sent = load.sent
    print(f"{2 * ROUNDS} restarts, {sent.answers.total()} requests, {sent.failed} failed")
    assert (sent.lost, sent.bodies) == ([], [])
    assert len(kept["resource_providers"]) >= sent.answers.total()


def test_no_request_is_lost_by_clients_that_know_both(replicas: list[Replica]) -> None:
    """They never look whether a connection was closed before they send on it."""
    urls = [replica.service.url for replica in replicas]
    with KeepAliveClients(urls, create_other, clients=6, per_second=60) as load:
        for _ in range(ROUNDS):
            for replica in replicas:
                wait_for_more(load)
                replica.restart()
        wait_until(lambda: load.sent.answers.total() > 50, "some answers", 30)
    sent = load.sent
    print(f"{2 * ROUNDS} restarts, {sent.answers.total()} requests, {sent.failed} failed")
    assert (sent.lost, sent.bodies) == ([], [])


def wait_for_more(load: KeepAliveClients) -> None:
    seen = load.sent.answers.total()
    wait_until(lambda: load.sent.answers.total() > seen + 20, "answers", 30)


def test_an_ending_process_says_so_and_lets_its_clients_go(config: Path) -> None:
    """Without a load balancer: readiness first, then the last answer of each connection, then the end."""
    replica = Replica(config, "alone")
    keeps = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=10)
    assert asked(keeps, "/resource_classes") == (200, None)
    pids = replica.service.pids()
    replica.service.process.send_signal(signal.SIGTERM)
    wait_until(lambda: not answers(replica.service.url), "readiness to change", 10)
    ready = requests.get(f"{replica.service.url}/readyz", timeout=5)
    assert (ready.status_code, ready.text.startswith("ending: ")) == (503, True)
    assert requests.get(f"{replica.service.url}/healthz", timeout=5).status_code == 200
    assert asked(keeps, "/resource_classes") == (200, "close")
    assert replica.service.process.wait(20) == 0
    wait_until(lambda: not any(map(is_alive, pids)), "the workers to end", 5)


def asked(connection: http.client.HTTPConnection, path: str) -> tuple[int, str | None]:
    connection.request("GET", path, headers=ADMIN)
    answer = connection.getresponse()
    answer.read()
    return answer.status, answer.getheader("Connection")


def test_control_c_ends_it_at_once(tmp_path: Path) -> None:
    config = moorage.configure(
        tmp_path,
        f"sqlite:///{tmp_path / 'data.sqlite'}",
        {"process": {"drain_seconds": "10", "grace_seconds": "60"}},
    )
    moorage.sync_database(config)
    with moorage.start(config, workers=1) as service:
        begun = time.monotonic()
        service.process.send_signal(signal.SIGINT)
        service.process.wait(60)
        assert time.monotonic() - begun < 10


def test_workers_that_are_replaced_let_their_clients_go(config: Path) -> None:
    """SIGHUP: the process goes on, and is ready all the time."""
    with moorage.start(config, workers=1) as service:
        keeps = http.client.HTTPConnection("127.0.0.1", service.port, timeout=10)
        assert asked(keeps, "/resource_classes") == (200, None)
        service.process.send_signal(signal.SIGHUP)
        wait_until(lambda: asked(keeps, "/resource_classes") == (200, "close"), "the last answer", 20)
        assert answers(service.url)
        wait_until(lambda: stays_open(service.port), "a new worker", 20)


def stays_open(port: int) -> bool:
    """Whether a worker answered that is not about to end."""
    fresh = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    status, connection = asked(fresh, "/resource_classes")
    fresh.close()
    return (status, connection) == (200, None)


def test_a_console_proxy_says_so_where_its_health_is_asked(tmp_path: Path) -> None:
    """It still takes connections then."""
    port, metrics = free_port(), free_port()
    config = tmp_path / "moorage.conf"
    config.write_text(
        ini(
            {
                "database": {"connection": f"sqlite:///{tmp_path / 'data.sqlite'}"},
                "process": {"drain_seconds": "2", "grace_seconds": "20"},
                "consoles": {"metrics_port": str(metrics)},
            }
        )
    )
    moorage.sync_database(config)
    command: list[str | Path] = [PROGRAMS / "moorage-console-proxy", "--config-file", config]
    command += ["--listen", "127.0.0.1", "--port", str(port)]
    with start_service(command, port, tmp_path / "proxy.log") as service:
        url = f"http://127.0.0.1:{metrics}/readyz"
        wait_until(lambda: port_is_open(metrics), "its health", 20)
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: requests.get(url, timeout=5).text.startswith("ending: "), "the word", 10)
        assert port_is_open(port)
        assert service.process.wait(20) == 0


def test_a_second_signal_ends_the_wait(tmp_path: Path) -> None:
    config = moorage.configure(
        tmp_path,
        f"sqlite:///{tmp_path / 'data.sqlite'}",
        {"process": {"drain_seconds": "30", "grace_seconds": "90"}},
    )
    moorage.sync_database(config)
    with moorage.start(config, workers=1) as service:
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not answers(service.url), "readiness to change", 10)
        service.process.send_signal(signal.SIGTERM)
        try:
            service.process.wait(25)
        except subprocess.TimeoutExpired:
            pytest.fail(service.log_tail())
