"""Live migrations as an operator sees them: API, conductor and agents are processes, and guests are real."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.lab.libvirt import programs, tiny_guest
from tests.lab.libvirt.hosts import CLIENT_TIMEOUT, LibvirtLab
from tests.support import postgres, rabbitmq
from tests.support.debian import Unavailable
from tests.support.deployment import ADMIN, SHARED_FLAVOR, Deployment, Neighbours, Shape
from tests.support.processes import wait_until
from tests.support.profiles import Settings

PATIENCE = 120.0


@dataclass(frozen=True)
class TwoHypervisors(Shape):
    apis: int = 1
    conductors: int = 1

    @property
    def hosts(self) -> tuple[str, ...]:
        return ("h1", "h2")

    @property
    def nodes(self) -> int:
        return len(self.hosts)

    def of(self, host: str) -> Settings:
        return {"agent": {}}


class OwnImages(Neighbours):
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def server_sections(self) -> Settings:
        return {"images": {"directory": str(self._directory)}}


class Cloud:
    def __init__(self, made: Deployment, lab: LibvirtLab, instances: Path) -> None:
        self.deployment = made
        self.lab = lab
        self.instances = instances
        self.server = ""

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        url = self.deployment.urls[0] + path
        headers = ADMIN | more.pop("headers", {})
        answer = requests.request(method, url, json=body, headers=headers, timeout=60, **more)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def act(self, action: str, argument: Any = None) -> None:
        self.ask("POST", f"/v2.1/servers/{self.server}/action", {action: argument})

    def show(self) -> tuple[str, str]:
        shown = self.ask("GET", f"/v2.1/servers/{self.server}")["server"]
        return shown["OS-EXT-SRV-ATTR:host"], shown["status"]

    def wait(self, host: str, status: str) -> None:
        wait_until(lambda: self.show() == (host, status), f"{status} on {host}", PATIENCE)

    def migrate_live(self, host: str) -> int:
        """When this returns it is on its way, and stays so: there is not much room between the hosts."""
        source = self.show()[0]
        self.act("os-migrateLive", {"host": host, "block_migration": "auto"})
        path = f"/v2.1/servers/{self.server}/migrations"
        wait_until(lambda: self.is_on_its_way(source), "a guest on its way", PATIENCE)
        wait_until(lambda: self.ask("GET", path)["migrations"][0]["status"] == "running", "running", PATIENCE)
        return int(self.ask("GET", path)["migrations"][0]["id"])

    def is_on_its_way(self, source: str) -> bool:
        stats = self.lab.hosts[source].run("virsh", "domjobinfo", self.server, check=False)
        return "Memory processed" in stats

    def runs_on(self) -> list[str]:
        return [name for name, host in self.lab.hosts.items() if self.server in host.guest_pids()]

    def tick(self, host: str) -> int:
        return tiny_guest.tick(self.instances / host / self.server / "console.log")

    def boots(self, host: str) -> int:
        return tiny_guest.boots(self.instances / host / self.server / "console.log")


@pytest.fixture
def cloud(pair: LibvirtLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setenv("PYTHONPATH", str(programs.binding()))
    instances = tmp_path / "instances"
    try:
        with rabbitmq.room() as broker, postgres.start() as database:
            shape, neighbours = TwoHypervisors(), OwnImages(tmp_path / "images")
            made = Deployment(tmp_path, database, broker, shape, neighbours)
            for name, host in pair.hosts.items():
                written = made.configure_agent(
                    name,
                    {
                        "agent": {"driver": "libvirt"},
                        "libvirt": {
                            "connection_uri": host.uri,
                            "virt_type": "qemu",
                            "instances_path": str(instances / name),
                            "shutdown_timeout": "0.5",
                            "client_timeout": str(CLIENT_TIMEOUT),
                            "migration_uri": "qemu+tcp://%s/system",
                            "live_migration_inbound_addr": host.address,
                            "live_migration_bandwidth": "1",
                            "live_migration_unsafe": "true",
                        },
                        "glance": {"auth_type": "none", "endpoint": f"{made.urls[0]}/image"},
                    },
                )
                written.write_text(written.read_text().replace("%%s", "%s"))  # these files know no escapes
            try:
                made.start()
                running = Cloud(made, pair, instances)
                running.server = _booted(running, tmp_path)
                yield running
            finally:
                print(made.logs())
                made.stop()
    except Unavailable as missing:
        pytest.skip(str(missing))


def _booted(cloud: Cloud, directory: Path) -> str:
    image = cloud.ask(
        "POST", "/image/v2/images", {"name": "tiny", "disk_format": "raw", "container_format": "bare"}
    )
    data = tiny_guest.make_disk(directory / "tiny.raw").read_bytes()
    octets = {"content-type": "application/octet-stream"}
    cloud.ask("PUT", f"/image/v2/images/{image['id']}/file", data=data, headers=octets)
    body = {
        "name": "mover",
        "flavorRef": SHARED_FLAVOR,
        "imageRef": image["id"],
        "networks": "none",
        "host": "h1",
    }
    cloud.server = cloud.ask("POST", "/v2.1/servers", {"server": body})["server"]["id"]
    cloud.wait("h1", "ACTIVE")
    wait_until(lambda: cloud.tick("h1") > 1, "a guest that counts", PATIENCE)
    return cloud.server


def test_a_guest_moves_while_agents_are_frozen_and_operators_change_their_mind(cloud: Cloud) -> None:
    server = cloud.server
    migration = cloud.migrate_live("h2")
    cloud.ask("DELETE", f"/v2.1/servers/{server}/migrations/{migration}")
    cloud.wait("h1", "ACTIVE")
    assert cloud.runs_on() == ["h1"]

    migration = cloud.migrate_live("h2")
    cloud.ask("POST", f"/v2.1/servers/{server}/migrations/{migration}/action", {"force_complete": None})
    cloud.wait("h2", "ACTIVE")
    assert cloud.runs_on() == ["h2"]

    agent = cloud.deployment.agents["h2"]
    cloud.migrate_live("h1")
    agent.freeze()
    cloud.lab.hosts["h2"].run("virsh", "suspend", server)  # then libvirt is soon done with it
    cloud.wait("h1", "ACTIVE")
    assert cloud.runs_on() == ["h1"]
    agent.thaw()
    wait_until(lambda: cloud.deployment.hosts_up() == {"h1", "h2"}, "the agent", PATIENCE)
    wait_until(lambda: not (cloud.instances / "h2" / server).exists(), "what it had to go", PATIENCE)
    before = cloud.tick("h1")
    wait_until(lambda: cloud.tick("h1") > before, "a guest that counts", PATIENCE)
    assert cloud.boots("h1") == 1
    assert cloud.runs_on() == ["h1"]

    cloud.act("migrate", {"host": "h2"})
    cloud.wait("h2", "VERIFY_RESIZE")
    cloud.act("revertResize")
    cloud.wait("h1", "ACTIVE")
    assert cloud.runs_on() == ["h1"]
    cloud.ask("DELETE", f"/v2.1/servers/{server}")
    wait_until(lambda: not cloud.runs_on(), "the end of the guest", PATIENCE)
    wait_until(lambda: _left(cloud) == {"_base"}, "empty hosts", PATIENCE)


def _left(cloud: Cloud) -> set[str]:
    return {path.name for host in cloud.lab.hosts for path in (cloud.instances / host).iterdir()}
