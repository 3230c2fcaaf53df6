"""A deployment whose hosts are those of the libvirt lab: its agents run inside them, all else outside."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.lab.libvirt import hosts, programs, tiny_guest
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support import debian, postgres, rabbitmq
from tests.support.deployment import ADMIN, SHARED_FLAVOR, Deployment, Part, Shape
from tests.support.postgres import Postgres
from tests.support.processes import NotReadyError, wait_until
from tests.support.profiles import Settings
from tests.support.rabbitmq import RabbitMQ
from tests.support.relay import relay

HOSTS = ("h1", "h2")
_IMAGE_MIB = 16


@dataclass(frozen=True)
class GuestShape(Shape):
    apis: int = 1
    conductors: int = 2
    options: tuple[tuple[str, str], ...] = ()
    """Of `[libvirt]`, beside the usual ones."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return HOSTS

    @property
    def nodes(self) -> int:
        return len(HOSTS)

    def of(self, host: str) -> Settings:
        """Emulated guests that nobody waits for: what does not follow at once is forced."""
        guests = {
            "virt_type": "qemu",
            "shutdown_timeout": "0.5",
            "soft_reboot_timeout": "0.5",
            "vnc_listen": "",
            "unused_image_seconds": "0",
            "migration_uri": "qemu+tcp://%s/system",
            **dict(self.options),
        }
        return {
            "agent": {
                "driver": "libvirt",
                "inventory_interval": "2",
                "cpu_allocation_ratio": "64",
                "disk_allocation_ratio": "64",
            },
            "libvirt": guests,
        }


class GuestDeployment(Deployment):
    def __init__(
        self,
        directory: Path,
        database: Postgres,
        broker: RabbitMQ,
        lab: LibvirtLab,
        shape: GuestShape | None = None,
    ) -> None:
        self.lab = lab
        super().__init__(directory, database, broker, shape or GuestShape())

    def _configure_server(self, name: str, more: Settings) -> Path:
        return super()._configure_server(
            name, {"images": {"directory": str(self.directory / "images")}, **more}
        )

    def configure_agent(self, host: str, more: Settings) -> Path:
        """It reaches the rest of the cloud at the address that this machine has in the lab."""
        addresses = [one.address for one in self.lab.hosts.values()]
        networks = {"tunnel_address": self.lab.hosts[host].address, "tunnel_peers": ",".join(addresses)}
        own = {"instances_path": str(self.lab.instances), **networks, **more["libvirt"]}
        placement = f"http://{self.lab.gateway}:{self.placement.port}"
        images = f"http://{self.lab.gateway}:{self.apis[0].port}/image"
        reached: Settings = {
            "DEFAULT": {"transport_url": self.broker.url.replace("127.0.0.1", self.lab.gateway)},
            "placement_client": {"auth_type": "none", "endpoint": placement},
            "glance": {"auth_type": "none", "endpoint": images},
        }
        return super().configure_agent(host, {**more, **reached, "libvirt": own})

    def _agent(self, host: str) -> Part:
        part = super()._agent(host)
        found = f"PYTHONPATH={programs.binding()}"
        part.command = self.lab.hosts[host].command("env", found, *part.command)
        return part

    def start(self) -> None:
        super().start()
        self.image_id = self.add_image(self._tiny_guest())

    def boot(self, host: str | None = None, **more: str) -> str:
        server = {"name": "s", "flavorRef": SHARED_FLAVOR, "imageRef": self.image_id, "networks": "auto"}
        asked = {**server, **({} if host is None else {"host": host}), **more}
        return str(self.ask("POST", "/v2.1/servers", {"server": asked}).json()["server"]["id"])

    def show(self, server: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.get(f"/v2.1/servers/{server}")["server"]
        return shown

    def act(self, server: str, action: str, details: Any = None) -> None:
        self.ask("POST", f"/v2.1/servers/{server}/action", {action: details})

    def delete(self, server: str) -> None:
        self.ask("DELETE", f"/v2.1/servers/{server}")

    def is_gone(self, server: str) -> bool:
        url = f"{self.urls[0]}/v2.1/servers/{server}"
        return requests.get(url, headers=ADMIN, timeout=30).status_code == 404

    def wait_for(self, server: str, status: str, seconds: float = 90.0) -> dict[str, Any]:
        def reached() -> bool:
            shown = self.show(server)
            assert shown["status"] in (status, "BUILD") or "ERROR" not in shown["status"], shown
            return shown["status"] == status and shown["OS-EXT-STS:task_state"] is None

        wait_until(reached, f"{server} to be {status}", seconds)
        return self.show(server)

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response:
        answer = requests.request(method, self.urls[0] + path, json=body, headers=ADMIN, timeout=30)
        assert answer.ok, answer.text
        return answer

    def add_image(self, disk: Path, **properties: str) -> str:
        described = {
            "name": disk.stem,
            "visibility": "public",
            "disk_format": "qcow2",
            "container_format": "bare",
            **properties,
        }
        made: str = self.ask("POST", "/image/v2/images", described).json()["id"]
        kind = {**ADMIN, "content-type": "application/octet-stream"}
        url = f"{self.urls[0]}/image/v2/images/{made}/file"
        answer = requests.put(url, data=disk.read_bytes(), headers=kind, timeout=60)
        assert answer.status_code == 204, answer.text
        return made

    def _tiny_guest(self) -> Path:
        """With some data behind it that takes a while to copy."""
        disk = self.directory / "image.qcow2"
        raw = tiny_guest.make_disk(self.directory / "image.raw")
        with raw.open("ab") as file:
            file.write(os.urandom(_IMAGE_MIB << 20))
        subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(disk)], check=True)
        return disk


@contextmanager
def running(directory: Path, shape: GuestShape | None = None) -> Iterator[GuestDeployment]:
    """`debian.Unavailable` where what it needs can neither be found nor installed."""
    programs.install()
    programs.binding()
    debian.install("nftables", Path("/usr/sbin/nft"))
    debian.install("dnsmasq-base", Path("/usr/sbin/dnsmasq"))
    with ExitStack() as stack:
        lab = stack.enter_context(hosts.running(directory / "lab", HOSTS, connected=True))
        broker = stack.enter_context(rabbitmq.start())
        database = stack.enter_context(postgres.start())
        cloud = GuestDeployment(directory, database, broker, lab, shape)
        for port in (broker.port, cloud.placement.port, cloud.apis[0].port):
            stack.enter_context(relay(lab.gateway, port))
        stack.callback(cloud.stop)
        try:
            cloud.start()
            yield cloud
        except NotReadyError as error:
            error.add_note(cloud.logs())
            raise
