"""A cloud in pieces with two libvirt hosts and a guest on one of them, as an operator sees it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.lab.libvirt import tiny_guest
from tests.lab.libvirt.hosts import CLIENT_TIMEOUT, LibvirtLab
from tests.support import postgres, rabbitmq
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


@contextmanager
def prepared(pair: LibvirtLab, directory: Path, bandwidth: int = 1) -> Iterator[Cloud]:
    """Written down, and not started; agents find libvirt's binding in the environment. With 1 MiB a second
    there is time to look at a guest on its way; 0 does not limit it."""
    instances = directory / "instances"
    with rabbitmq.room() as broker, postgres.start() as database:
        shape, neighbours = TwoHypervisors(), OwnImages(directory / "images")
        made = Deployment(directory, database, broker, shape, neighbours)
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
                        "live_migration_bandwidth": str(bandwidth),
                        "live_migration_unsafe": "true",
                    },
                    "glance": {"auth_type": "none", "endpoint": f"{made.urls[0]}/image"},
                },
            )
            written.write_text(written.read_text().replace("%%s", "%s"))  # these files know no escapes
        try:
            yield Cloud(made, pair, instances)
        finally:
            print(made.logs())
            made.stop()


@contextmanager
def running(pair: LibvirtLab, directory: Path, compute: str = "") -> Iterator[Cloud]:
    """With a guest that counts, on the first host. `compute` is a line more for that section."""
    with prepared(pair, directory) as cloud:
        for name in ("moorage", "conductor-1"):
            file = directory / f"{name}.conf"
            file.write_text(file.read_text().replace("[compute]\n", f"[compute]\n{compute}\n"))
        cloud.deployment.start()
        cloud.server = _booted(cloud, directory)
        yield cloud


def add_image(cloud: Cloud, directory: Path) -> str:
    """That of a guest that counts; its id."""
    told = {"name": "tiny", "disk_format": "raw", "container_format": "bare"}
    image_id = str(cloud.ask("POST", "/image/v2/images", told)["id"])
    data = tiny_guest.make_disk(directory / "tiny.raw").read_bytes()
    octets = {"content-type": "application/octet-stream"}
    cloud.ask("PUT", f"/image/v2/images/{image_id}/file", data=data, headers=octets)
    return image_id


def _booted(cloud: Cloud, directory: Path) -> str:
    body = {
        "name": "mover",
        "flavorRef": SHARED_FLAVOR,
        "imageRef": add_image(cloud, directory),
        "networks": "none",
        "host": "h1",
    }
    cloud.server = cloud.ask("POST", "/v2.1/servers", {"server": body})["server"]["id"]
    cloud.wait("h1", "ACTIVE")
    wait_until(lambda: cloud.tick("h1") > 1, "a guest that counts", PATIENCE)
    return cloud.server
