"""`moorage up`: everything in one process, with nothing prepared."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from tests.support.processes import Command, Service, free_port, start_service, wait_until
from tests.support.websockets import WebSocketClient

MOORAGE = Path(sys.executable).parent / "moorage"


def start(data: Path, *arguments: str) -> Service:
    port = free_port()
    ports = ["--placement-port", str(port), "--compute-port", str(free_port())]
    command: Command = [MOORAGE, "up", "--data", data, *ports, "--hosts", "0", *arguments]
    return start_service(command, port, data.parent / "up.log")


def refused(*arguments: str) -> str:
    """What a `moorage up` that must not start says."""
    run = subprocess.run(
        [str(MOORAGE), "up", *arguments], capture_output=True, text=True, timeout=30, check=False
    )
    assert run.returncode == 1
    assert "Traceback" not in run.stderr
    return run.stderr


def test_it_serves_with_the_generated_password_and_to_nobody_else(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(data) as service:
        providers = f"{service.url}/resource_providers"
        assert requests.get(providers, timeout=10).status_code == 401
        assert requests.get(providers, auth=("admin", "wrong"), timeout=10).status_code == 401
        login = ("admin", (data / "password").read_text().strip())
        assert requests.get(providers, auth=login, timeout=10).json() == {"resource_providers": []}
        assert service.url in (data / "clouds.yaml").read_text()


def test_data_and_password_outlive_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(data) as service:
        login = ("admin", (data / "password").read_text().strip())
        made = requests.post(
            f"{service.url}/resource_providers", json={"name": "node-1"}, auth=login, timeout=10
        )
        assert made.status_code == 201
    with start(data) as service:
        found = requests.get(f"{service.url}/resource_providers", auth=login, timeout=10).json()
        assert [provider["name"] for provider in found["resource_providers"]] == ["node-1"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with start(tmp_path / "data") as service:
        service.process.send_signal(number)
        assert service.process.wait(10) == 0
        assert "Moorage has stopped." in service.log_tail()


def test_no_authentication_works_on_loopback(tmp_path: Path) -> None:
    with start(tmp_path / "data", "--auth", "none") as service:
        answer = requests.get(
            f"{service.url}/resource_providers", headers={"X-Auth-Token": "notused"}, timeout=10
        )
        assert answer.status_code == 200


def test_no_authentication_is_refused_where_others_can_reach_it(tmp_path: Path) -> None:
    said = refused("--data", str(tmp_path / "data"), "--auth", "none", "--listen", "0.0.0.0")
    assert "loopback" in said


def test_a_port_that_is_taken_is_told_in_a_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = refused("--data", str(tmp_path / "data"), "--placement-port", str(taken.getsockname()[1]))
    assert "can't listen" in said


def test_a_port_that_can_not_be_is_refused(tmp_path: Path) -> None:
    run = subprocess.run(
        [str(MOORAGE), "up", "--data", str(tmp_path / "data"), "--compute-port", "99999"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert run.returncode == 2
    assert "--compute-port" in run.stderr


def test_a_directory_has_one_process(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start(data):
        before = (data / "clouds.yaml").read_text()
        ports = ["--placement-port", str(free_port()), "--compute-port", str(free_port())]
        assert f"another `moorage up` runs on {data}" in refused("--data", str(data), *ports)
        assert (data / "clouds.yaml").read_text() == before
    with start(data) as service:
        service.process.kill()
        service.process.wait(10)
    with start(data):
        pass


def test_a_configuration_file_wins_over_the_defaults(tmp_path: Path) -> None:
    database = tmp_path / "elsewhere.sqlite"
    config = tmp_path / "moorage.conf"
    config.write_text(f"[database]\nconnection = sqlite:///{database}\n")
    with start(tmp_path / "data", "--config", str(config)) as service:
        assert requests.get(f"{service.url}/healthz", timeout=10).status_code == 200
    assert database.exists()
    assert not (tmp_path / "data" / "moorage.sqlite").exists()


def test_the_first_who_asks_finds_all_hosts(tmp_path: Path) -> None:
    """Or a server that is booted at once would find none."""
    compute, placement = free_port(), free_port()
    ports = ["--placement-port", str(placement), "--compute-port", str(compute)]
    command: Command = [MOORAGE, "up", "--data", tmp_path / "data", "--auth", "none", "--hosts", "30", *ports]
    with start_service(command, compute, tmp_path / "up.log") as service:
        headers = {"x-auth-token": "admin", "openstack-api-version": "placement 1.39"}
        wanted = f"http://127.0.0.1:{placement}/allocation_candidates?resources=VCPU:1"
        candidates = requests.get(wanted, headers=headers, timeout=30).json()["allocation_requests"]
        agents = f"{service.url}/v2.1/os-services?binary=nova-compute"
        found = requests.get(agents, headers=headers, timeout=30).json()["services"]
        up = [each["host"] for each in found if each["state"] == "up"]
    assert (len(candidates), len(up)) == (30, 30)


def test_it_brings_a_proxy_to_consoles_which_urls_lead_to(tmp_path: Path) -> None:
    compute, log = free_port(), tmp_path / "up.log"
    ports = ["--placement-port", str(free_port()), "--compute-port", str(compute)]
    command: Command = [MOORAGE, "up", "--data", tmp_path / "data", "--auth", "none", "--hosts", "1", *ports]
    with start_service(command, compute, log) as service:
        api = f"{service.url}/v2.1"
        headers = {"x-auth-token": "admin", "openstack-api-version": "compute 2.96"}
        images = requests.get(f"{service.url}/image/v2/images", headers=headers, timeout=10).json()["images"]
        [image] = [found["id"] for found in images if "cirros" in found["name"]]
        asked = {"name": "s", "flavorRef": "1", "imageRef": image, "networks": "none"}
        made = requests.post(f"{api}/servers", json={"server": asked}, headers=headers, timeout=10).json()
        server = f"{api}/servers/{made['server']['id']}"

        def is_active() -> bool:
            return bool(
                requests.get(server, headers=headers, timeout=10).json()["server"]["status"] == "ACTIVE"
            )

        wait_until(is_active, "the server", 30)
        console = {"remote_console": {"protocol": "serial", "type": "serial"}}
        opened = requests.post(f"{server}/remote-consoles", json=console, headers=headers, timeout=10)
        url = opened.json()["remote_console"]["url"]
        client = WebSocketClient(url)
        assert made["server"]["id"].encode() in client.receive(60)
        client.close()
        assert f"http{url.partition('/?')[0].removeprefix('ws')}" in log.read_text()
