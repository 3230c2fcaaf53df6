"""A driver that another package brings: it passes the contract, is chosen by name, and boots servers."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from moorage.drivers.contract import Driver, ServerSpec
from moorage.drivers.testing import DriverContract, DriverStand
from tests.integration.out_of_tree_driver.moorage_notebook import NotebookDriver
from tests.support import moorage
from tests.support.processes import free_port, start_service, wait_until

SOURCE = Path(__file__).parent / "out_of_tree_driver"


class NotebookStand(DriverStand):
    def __init__(self, file: Path) -> None:
        self._file = file
        self.driver: Driver = NotebookDriver("host", 8, file)

    def spec(self, driver: Driver | None = None) -> ServerSpec:
        return ServerSpec(str(uuid.uuid4()), "s", "p", "u", self.driver.nodes()[0].uuid, {})

    def restart(self) -> None:
        self.driver.close()
        self.driver = NotebookDriver("host", 8, self._file)


class TestNotebook(DriverContract):
    @pytest.fixture
    def stand(self, tmp_path: Path) -> NotebookStand:
        return NotebookStand(tmp_path / "notebook.json")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package, installed beside Moorage: what `pip install --target` leaves, without its build tools."""
    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    target = tmp_path / "site-packages"
    shutil.copytree(SOURCE / "moorage_notebook", target / "moorage_notebook")
    metadata = target / f"moorage_notebook-{project['version']}.dist-info"
    metadata.mkdir()
    head = {"Metadata-Version": "2.1", "Name": project["name"], "Version": project["version"]}
    (metadata / "METADATA").write_text("".join(f"{name}: {value}\n" for name, value in head.items()))
    groups = project["entry-points"].items()
    lines = [line for group, found in groups for line in (f"[{group}]", *map(" = ".join, found.items()))]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return target


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "moorage.conf"
    file.write_text("[agent]\ndriver = notebook\nheartbeat_interval = 0.5\n[notebook]\npages = 3\n")
    return file


class Cloud:
    def __init__(self, url: str, password: str) -> None:
        self._url = url
        self._login = ("admin", password)

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        url = f"{self._url}{path}"
        return requests.request(method, url, json=body, auth=self._login, timeout=60)

    def hypervisors(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask("GET", "/v2.1/os-hypervisors/detail").json()["hypervisors"]
        return found

    def boot(self) -> str:
        images = self.ask("GET", "/image/v2/images").json()["images"]
        image = next(image for image in images if "cirros" in image["name"])
        server = {"name": "s", "flavorRef": "1", "imageRef": image["id"]}
        reply = self.ask("POST", "/v2.1/servers", {"server": server})
        assert reply.status_code == 202, reply.text
        return str(reply.json()["server"]["id"])

    def settled(self, server: str) -> dict[str, Any]:
        def at_rest() -> bool:
            found = self.ask("GET", f"/v2.1/servers/{server}").json()["server"]
            return found["status"] != "BUILD" and found["OS-EXT-STS:task_state"] is None

        wait_until(at_rest, "the server", 90)
        found: dict[str, Any] = self.ask("GET", f"/v2.1/servers/{server}").json()["server"]
        return found

    def actions(self, server: str) -> list[dict[str, Any]]:
        reply = self.ask("GET", f"/v2.1/servers/{server}/os-instance-actions")
        found: list[dict[str, Any]] = reply.json()["instanceActions"]
        return found

    def act(self, server: str, **action: Any) -> int:
        return self.ask("POST", f"/v2.1/servers/{server}/action", action).status_code


@pytest.fixture
def cloud(tmp_path: Path, package: Path, config: Path) -> Iterator[Cloud]:
    port = free_port()
    command: list[str | Path] = [
        *(moorage.PROGRAMS / "moorage", "up", "--data", tmp_path / "data"),
        *("--config", config, "--hosts", "1"),
        *("--placement-port", str(free_port()), "--compute-port", str(port)),
    ]
    environment = {"PYTHONPATH": str(package)}
    with start_service(command, port, tmp_path / "up.log", environment, timeout=120) as service:
        yield Cloud(service.url, (tmp_path / "data" / "password").read_text().strip())


def test_it_is_chosen_by_name_and_boots_a_server(cloud: Cloud, tmp_path: Path) -> None:
    wait_until(lambda: bool(cloud.hypervisors()), "the host", 60)
    (hypervisor,) = cloud.hypervisors()
    assert (hypervisor["hypervisor_type"], hypervisor["service"]["host"]) == ("notebook", "notebook-1")
    server = cloud.boot()
    found = cloud.settled(server)
    assert (found["status"], found["OS-EXT-SRV-ATTR:host"]) == ("ACTIVE", "notebook-1"), found.get("fault")
    notebook = tmp_path / "data" / "agents" / "notebook-1" / "notebook.json"
    assert json.loads(notebook.read_text()) == {server: 1}
    assert cloud.act(server, rebuild={"imageRef": found["image"]["id"]}) == 202
    assert cloud.settled(server)["status"] == "ACTIVE", "what its driver can't do changes nothing"
    (action,) = [one for one in cloud.actions(server) if one["action"] == "rebuild"]
    assert action["message"] == "Error", action
    assert cloud.act(server, **{"os-stop": None}) == 202
    assert cloud.settled(server)["status"] == "SHUTOFF"
    assert cloud.ask("DELETE", f"/v2.1/servers/{server}").status_code == 204
    wait_until(lambda: json.loads(notebook.read_text()) == {}, "the server to be gone", 60)


def test_where_it_is_not_installed_that_is_said(tmp_path: Path, config: Path) -> None:
    command = [str(moorage.PROGRAMS / "moorage"), "up", "--data", str(tmp_path / "data")]
    run = subprocess.run(
        [*command, "--config", str(config)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 1
    assert run.stderr == (
        "error: [agent] driver: there is no driver 'notebook'; installed are: fake, ironic, libvirt\n"
    )
