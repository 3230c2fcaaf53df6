"""A deployment whose hosts are those of the libvirt lab: its agents run inside them, all else outside."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from tests.lab.libvirt import hosts, programs, tiny_guest
from tests.lab.libvirt.hosts import LibvirtLab
from tests.support import debian, postgres, rabbitmq
from tests.support.deployment import ADMIN, SETTINGS, SHARED_FLAVOR, Deployment, Neighbours, Part, Shape
from tests.support.postgres import Postgres
from tests.support.processes import NotReadyError, free_port, wait_until
from tests.support.profiles import Settings
from tests.support.rabbitmq import RabbitMQ
from tests.support.relay import relay

HOSTS = ("h1", "h2")
_IMAGE_MIB = 16
_COMPUTE = {**SETTINGS["compute"], "service_down_time": str(3 * hosts.CLIENT_TIMEOUT)}
"""A permit to start a guest has to last for longer than libvirtd waits for a client that stands still."""


@dataclass(frozen=True)
class GuestShape(Shape):
    apis: int = 1
    conductors: int = 2
    options: tuple[tuple[str, str], ...] = ()
    """Of `[libvirt]`, beside the usual ones."""
    names: tuple[str, ...] = HOSTS
    for_users: bool = False
    """With all that users of guests want: screens, a proxy to them, and metadata."""

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.names

    @property
    def nodes(self) -> int:
        return len(self.names)

    def of(self, host: str) -> Settings:
        """Emulated guests that nobody waits for: what does not follow at once is forced."""
        guests = {
            "virt_type": "qemu",
            "shutdown_timeout": "0.5",
            "soft_reboot_timeout": "0.5",
            "vnc_listen": "",
            "unused_image_seconds": "0",
            "migration_uri": "qemu+tcp://%s/system",
            "client_timeout": str(hosts.CLIENT_TIMEOUT),
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
    """Whatever listens on this machine's loopback does so on that of each host, too."""

    shape: GuestShape

    def __init__(
        self,
        directory: Path,
        database: Postgres,
        broker: RabbitMQ,
        lab: LibvirtLab,
        shape: GuestShape,
        neighbours: Neighbours | None = None,
    ) -> None:
        self.lab = lab
        self.shape = shape
        self.metadata_port, self.consoles_port = free_port(), free_port()
        self.metadata_secret = secrets.token_hex()
        self._relays = ExitStack()
        """Ports that hosts reach on their own loopback."""
        super().__init__(directory, database, broker, shape, neighbours)
        wanted = {"metadata": self.metadata_port, "console-proxy": self.consoles_port}
        self.for_users = [
            self.server(name, f"moorage-{name}", port) for name, port in wanted.items() if shape.for_users
        ]

    @property
    def parts(self) -> list[Part]:
        return [*super().parts, *self.for_users]

    @property
    def ports(self) -> list[int]:
        """What hosts have to reach."""
        return [self.broker.port, self.placement.port, self.apis[0].port, self.metadata_port]

    def _configure(self, name: str, more: Settings) -> Path:
        metadata = {"url": f"http://127.0.0.1:{self.metadata_port}", "shared_secret": self.metadata_secret}
        consoles = {"base_url": f"http://127.0.0.1:{self.consoles_port}"}
        told: Settings = {"metadata": metadata, "consoles": consoles} if self.shape.for_users else {}
        return super()._configure(name, {**told, **more})

    def _configure_server(self, name: str, more: Settings) -> Path:
        own: Settings = {"images": {"directory": str(self.directory / "images")}, "compute": _COMPUTE}
        return super()._configure_server(name, {**own, **self.neighbours.server_sections(), **more})

    def configure_agent(self, host: str, more: Settings) -> Path:
        address = self.lab.hosts[host].address
        own = {
            "instances_path": str(self.lab.instances),
            "live_migration_inbound_addr": address,
            "tunnel_address": address,
            "tunnel_peers": ",".join(one.address for one in self.lab.hosts.values()),
            **more["libvirt"],
            **({"vnc_listen": address, "serial_listen": address} if self.shape.for_users else {}),
            **dict(self.shape.options),
        }
        images: Settings = {"glance": {"auth_type": "none", "endpoint": f"{self.urls[0]}/image"}}
        told = {**images, **self.neighbours.agent_sections()}
        return super().configure_agent(host, {**told, **more, "libvirt": own})

    def _agent(self, host: str) -> Part:
        part = super()._agent(host)
        found = f"PYTHONPATH={programs.binding()}"
        part.command = self.lab.hosts[host].command("env", found, *part.command)
        return part

    def lead(self, host: str, ports: Sequence[int] = ()) -> None:
        """It reaches what listens on this machine, and these ports, too."""
        for port in (*self.ports, *ports):
            self._relays.enter_context(relay(self.lab.hosts[host].network, port))

    def power_on(self, host: str) -> None:
        """A host that has died, and its agent."""
        self.agents[host].kill()
        self.lab.power_on(host)
        self.lead(host)
        self.agents[host] = self._agent(host)
        self.agents[host].start()

    def stop(self) -> None:
        super().stop()
        self._relays.close()

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

    def add_tiny_guest(self) -> None:
        """The image that servers get: with some data behind it that takes a while to copy."""
        disk = self.directory / "image.qcow2"
        raw = tiny_guest.make_disk(self.directory / "image.raw")
        with raw.open("ab") as file:
            file.write(os.urandom(_IMAGE_MIB << 20))
        subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", "qcow2", str(raw), str(disk)], check=True)
        self.image_id = self.add_image(disk)


@contextmanager
def running(directory: Path, shape: GuestShape | None = None) -> Iterator[GuestDeployment]:
    """On hosts of its own; `debian.Unavailable` where what it needs can neither be found nor installed."""
    programs.install()
    programs.binding()
    debian.install("nftables", "dnsmasq-base")
    wanted = shape or GuestShape()
    with (
        hosts.running(directory / "lab", wanted.names, connected=True) as lab,
        running_on(lab, directory, wanted) as cloud,
    ):
        cloud.add_tiny_guest()
        yield cloud


@contextmanager
def running_on(
    lab: LibvirtLab,
    directory: Path,
    shape: GuestShape,
    neighbours: Neighbours | None = None,
    ports: Sequence[int] = (),
) -> Iterator[GuestDeployment]:
    """On hosts that are there, and have to reach some ports of the neighbours'."""
    with ExitStack() as stack:
        broker = stack.enter_context(rabbitmq.room())
        database = stack.enter_context(postgres.start())
        cloud = GuestDeployment(directory, database, broker, lab, shape, neighbours)
        stack.callback(cloud.stop)
        for name in lab.hosts:
            cloud.lead(name, ports)
        try:
            cloud.start()
            yield cloud
        except NotReadyError as error:
            error.add_note(cloud.logs())
            raise
