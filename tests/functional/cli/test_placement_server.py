"""`moorage-placement`: many workers on one database."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from moorage.cli.processes import workers
from tests.support.processes import Command, Service, free_port, start_service, wait_until

PROGRAMS = Path(sys.executable).parent
ADMIN = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}


@pytest.fixture
def config_file(tmp_path: Path, database_url: str) -> Path:
    return _configured(tmp_path, database_url)


def _configured(directory: Path, database_url: str) -> Path:
    path = directory / "moorage.conf"
    path.write_text(
        f"[database]\nconnection = {database_url}\n[auth]\nstrategy = none\n[placement]\nworkers = 2\n"
    )
    return path


@pytest.fixture
def service(config_file: Path) -> Service:
    manage = [str(PROGRAMS / "moorage-manage"), "--config-file", str(config_file), "db", "sync"]
    subprocess.run(manage, check=True)
    port = free_port()
    command: Command = [PROGRAMS / "moorage-placement", "--config-file", config_file, "--port", str(port)]

    def answers() -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200
        except requests.ConnectionError:
            return False

    return start_service(command, port, config_file.parent / "placement.log", ready=answers)


def test_every_worker_sees_every_write_at_the_next_request(service: Service) -> None:
    with service:
        for number in range(20):
            # A new connection each time, so that the workers take turns.
            made = requests.post(
                f"{service.url}/resource_providers",
                json={"name": f"node-{number}"},
                headers=ADMIN,
                timeout=10,
            )
            assert made.status_code == 200
            found = requests.get(f"{service.url}/resource_providers", headers=ADMIN, timeout=10).json()
            assert len(found["resource_providers"]) == number + 1


def test_a_signal_ends_it_and_its_workers(service: Service) -> None:
    with service:
        pids = service.pids()
        assert len(pids) >= 3
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(20) == 0
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "workers to end", 10)


def test_a_worker_that_dies_is_replaced(service: Service) -> None:
    with service:
        master, *others = service.pids()
        assert master == service.pid
        for pid in others:
            os.kill(pid, signal.SIGKILL)

        def answers() -> bool:
            try:
                return requests.get(f"{service.url}/resource_providers", headers=ADMIN, timeout=5).ok
            except requests.RequestException:
                return False

        wait_until(answers, "new workers", 30)
        assert not set(others) & set(service.pids())


def test_an_old_schema_is_refused_with_what_to_do(tmp_path: Path, empty_database_url: str) -> None:
    config_file = _configured(tmp_path, empty_database_url)
    command = [
        str(PROGRAMS / "moorage-placement"),
        *("--config-file", str(config_file), "--port", str(free_port())),
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1
    assert "moorage-manage db sync" in run.stderr


def test_no_authentication_is_refused_where_others_can_reach_it(config_file: Path) -> None:
    command = [str(PROGRAMS / "moorage-placement"), "--config-file", str(config_file), "--listen", "0.0.0.0"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1
    assert "loopback" in run.stderr


def test_a_port_that_another_has_is_told_in_a_sentence(config_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        command = [str(PROGRAMS / "moorage-placement"), "--config-file", str(config_file), "--port", port]
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1
    assert f"can't listen on http://127.0.0.1:{port}: " in run.stderr
    assert "Traceback" not in run.stderr


def test_what_the_command_line_says_holds_for_workers(config_file: Path) -> None:
    told = workers.handed_on([str(config_file)], {"placement.threads": 3})
    ask = "from moorage.cli.processes import workers; print(workers.begin('a worker').placement.threads)"
    run = subprocess.run(
        [sys.executable, "-c", ask], env={**os.environ, **told}, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "3"
