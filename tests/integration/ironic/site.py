"""Moorage in pieces on a real Ironic: hosts `a-1` and `a-2` share the nodes of one conductor group, `b-1` has
those of another."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import requests

from moorage.db import engine
from moorage.db.database import Database
from moorage.images.catalogue import Catalogue
from tests.lab.ironic import service as ironic
from tests.lab.ironic.nodes import Nodes
from tests.support import postgres, rabbitmq
from tests.support.deployment import ADMIN, Deployment, Shape
from tests.support.moorage import PROGRAMS
from tests.support.processes import wait_until
from tests.support.profiles import Settings

HOSTS = {"a-1": "A", "a-2": "a", "b-1": "b"}
"""Each with the group that its configuration names: their case does not matter."""
NODES = {"a": 4, "b": 2}
FLAVOR, IMAGE = "gold", "metal"
IMAGE_HASH = hashlib.sha512(b"an image").hexdigest()


@dataclass(frozen=True)
class MetalShape(Shape):
    ironic_url: str = ""
    apis: int = 1
    conductors: int = 1

    @property
    def hosts(self) -> tuple[str, ...]:
        return tuple(HOSTS)

    @property
    def nodes(self) -> int:
        return sum(NODES.values())

    def of(self, host: str) -> Settings:
        return self.serving(partition_key=HOSTS[host])

    def serving(self, **options: str) -> Settings:
        reached = {"auth_type": "none", "endpoint": self.ironic_url}
        return {
            "agent": {"driver": "ironic", "inventory_interval": "1.5"},
            "ironic": {**reached, "poll_interval": "0.3", "full_listing_interval": "6", **options},
        }


class Site:
    def __init__(self, cloud: Deployment, metal: Nodes, shape: MetalShape) -> None:
        self.cloud = cloud
        self.metal = metal
        self.shape = shape

    def start(self) -> None:
        self.cloud.start()
        database = Database(engine.connect(self.cloud.database_url))
        values = {
            "location": self.metal.image("image"),
            "os_hash_algo": "sha512",
            "os_hash_value": IMAGE_HASH,
            "properties": {"baremetal:image_type": "whole-disk"},
        }
        Catalogue(database).seed({IMAGE: values})
        database.engine.dispose()
        self.cloud.make_flavor(FLAVOR, only(gold=1))

    def owners(self) -> dict[str, str]:
        """The host of each node, as the API tells it."""
        listed = self.cloud.get("/v2.1/os-hypervisors/detail")["hypervisors"]
        return {one["hypervisor_hostname"]: one["service"]["host"] for one in listed}

    def owned_by(self, *hosts: str) -> set[str]:
        return {node for node, host in self.owners().items() if host in hosts}

    def serve(self, host: str, **options: str) -> None:
        """Change what a host serves, as an operator does it: in its file, then SIGHUP."""
        self.cloud.configure_agent(host, self.shape.serving(**options))
        service = self.cloud.agents[host].service
        assert service is not None
        service.process.send_signal(signal.SIGHUP)

    def machines(self) -> dict[str, Any]:
        """What `moorage nodes` says on a machine that has the database, and reaches Ironic."""
        files = (self.cloud.config, self.cloud.directory / "a-1.conf")
        command = [str(PROGRAMS / "moorage"), "nodes", "--json"]
        command += [text for file in files for text in ("--config-file", str(file))]
        ran = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    def boot(self, name: str, **more: Any) -> str:
        images = self.cloud.get("/image/v2/images")["images"]
        image = next(one["id"] for one in images if one["name"] == IMAGE)
        body = {"name": name, "flavorRef": FLAVOR, "imageRef": image, "networks": "auto", **more}
        answer = self.post("/v2.1/servers", {"server": body}, 202)
        return str(answer.json()["server"]["id"])

    def show(self, server: str) -> dict[str, Any]:
        shown: dict[str, Any] = self.cloud.get(f"/v2.1/servers/{server}")["server"]
        return shown

    def act(self, server: str, action: str, details: Any = None) -> None:
        self.post(f"/v2.1/servers/{server}/action", {action: details}, 202)

    def wait(self, server: str, status: str, seconds: float = 90) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while True:
            shown = self.show(server)
            if shown["status"] == status and shown["OS-EXT-STS:task_state"] is None:
                return shown
            assert time.monotonic() < deadline, f"{shown}\n{self.cloud.logs()}"
            assert status == "ERROR" or shown["status"] != "ERROR", f"{shown}\n{self.cloud.logs()}"
            time.sleep(0.1)

    def delete(self, *servers: str) -> None:
        for server in servers:
            answer = requests.delete(f"{self.cloud.urls[0]}/v2.1/servers/{server}", headers=ADMIN, timeout=30)
            assert answer.status_code == 204
        for server in servers:
            wait_until(partial(self.is_gone, server), "the delete", 60)

    def is_gone(self, server: str) -> bool:
        answer = requests.get(f"{self.cloud.urls[0]}/v2.1/servers/{server}", headers=ADMIN, timeout=30)
        return answer.status_code == 404

    def wait_until_free(self, *nodes: str) -> None:
        """Cleaned, and offered to the next server."""

        def free(node: str) -> bool:
            found = self.cloud.get_placement(f"/resource_providers/{node}/inventories")["inventories"]
            return bool(found) and all(unit["reserved"] == 0 for unit in found.values())

        for node in nodes:
            wait_until(partial(free, node), "the node to be free", 60)

    def wait_for_room(self) -> None:
        """At least one machine is offered by some host that is up."""

        def room() -> bool:
            up = self.cloud.hosts_up()
            listed = self.cloud.get("/v2.1/os-hypervisors/detail")["hypervisors"]
            return any(self._offered(one["id"]) for one in listed if one["service"]["host"] in up)

        wait_until(room, "a machine to be offered", 90)

    def _offered(self, provider: str) -> int:
        found = self.cloud.get_placement(f"/resource_providers/{provider}/inventories")["inventories"]
        usages = self.cloud.get_placement(f"/resource_providers/{provider}/usages")["usages"]
        unit = found.get("CUSTOM_GOLD", {"total": 0, "reserved": 0})
        return int(unit["total"] - unit["reserved"] - usages.get("CUSTOM_GOLD", 0))

    def post(self, path: str, body: dict[str, Any], status: int) -> requests.Response:
        answer = requests.post(self.cloud.urls[0] + path, json=body, headers=ADMIN, timeout=30)
        assert answer.status_code == status, answer.text
        return answer


@contextmanager
def running(
    directory: Path,
    counts: Mapping[str, int] = NODES,
    shaped: Callable[[Nodes], MetalShape] = lambda metal: MetalShape(ironic_url=metal.url),
) -> Iterator[Site]:
    """With so many nodes a group. Raises `debian.Unavailable` without a broker."""
    with rabbitmq.room() as broker, postgres.start() as database:
        metal_directory = directory / "ironic"
        metal_directory.mkdir()
        with ironic.running(metal_directory, database, tuple(counts), deploy_delay=1) as metal:
            wanted = [
                (f"{group}-{number}", group) for group, count in counts.items() for number in range(count)
            ]
            with ThreadPoolExecutor(3) as pool:
                list(pool.map(lambda node: metal.enrol(*node), wanted))
            shape = shaped(metal)
            cloud = Deployment(directory, database, broker, shape)
            site = Site(cloud, metal, shape)
            try:
                site.start()
                yield site
            finally:
                cloud.stop()


def only(**classes: int) -> dict[str, str]:
    nothing_else = {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources:DISK_GB": "0"}
    return nothing_else | {f"resources:CUSTOM_{name.upper()}": str(count) for name, count in classes.items()}
