"""Moorage in pieces, beside a real Ironic, Keystone, Neutron and Glance that know each other.

Machines boot by PXE from a RAM disk, which takes no agent on them: all that Ironic does to networks for
that is real. Switches are simulated, in Neutron.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pycdlib
import sqlalchemy as sa
from openstack.connection import Connection

from tests.integration.clouds import keystone_clouds
from tests.integration.openstack_neighbours import OpenStackNeighbours
from tests.lab.client.openstack import openstack, order
from tests.lab.ironic import service as ironic
from tests.lab.ironic.beside_openstack import OWN_NETWORK, OpenStackBeside
from tests.lab.ironic.nodes import Nodes
from tests.lab.openstack import service as openstack_service
from tests.lab.openstack.service import OpenStack
from tests.lab.openstack.settings import credentials
from tests.support import postgres, rabbitmq
from tests.support.deployment import Deployment, Shape
from tests.support.processes import free_port, wait_until
from tests.support.profiles import Settings

HOST, GROUP, FLAVOR, IMAGE = "metal-1", "a", "gold", "ramdisk"
DOMAIN = "rack.example."


@dataclass(frozen=True)
class NetworkedShape(Shape):
    ironic: Settings | None = None
    apis: int = 1
    conductors: int = 1
    machines: int = 2

    @property
    def hosts(self) -> tuple[str, ...]:
        return (HOST,)

    @property
    def nodes(self) -> int:
        return self.machines

    def of(self, host: str) -> Settings:
        agent = {"driver": "ironic", "inventory_interval": "1.5"}
        return {"agent": agent, **(self.ironic or {})}


class MetalNeighbours(OpenStackNeighbours):
    def image_id(self, deployment: Deployment) -> str:
        """Of a system that boots from a RAM disk, so that Ironic needs no agent on the machine."""
        images = self.lab.connect(self.lab.moorage).image
        common: dict[str, Any] = {"data": b"0" * 1024, "visibility": "public"}
        kinds = {"kernel_id": "aki", "ramdisk_id": "ari"}
        parts: dict[str, Any] = {
            name: images.create_image(name=kind, disk_format=kind, container_format=kind, **common).id
            for name, kind in kinds.items()
        }
        made = images.create_image(name=IMAGE, disk_format="raw", container_format="bare", **common, **parts)
        return str(made.id)


class NetworkedSite:
    def __init__(self, cloud: Deployment, lab: OpenStack, metal: Nodes) -> None:
        self.cloud = cloud
        self.lab = lab
        self.metal = metal
        self.admin: Connection = lab.connect(lab.moorage)
        self._clouds_file = cloud.directory / "clouds.yaml"
        self._clouds_file.write_text(keystone_clouds(lab.keystone, lab.demo, lab.moorage))

    def ask(self, command: str) -> Any:
        """As the ordinary user, with the official client."""
        return openstack(self._clouds_file, self.lab.demo.name, *command.split())

    def order(self, command: str) -> str:
        return order(self._clouds_file, self.lab.demo.name, *command.split())

    def print_on_console(self, machine: str, text: str) -> None:
        """As the program does that keeps what machines print."""
        with console_log(self.cloud.directory, machine).open("a") as file:
            file.write(text)

    @contextmanager
    def console_proxy(self) -> Iterator[int]:
        """The port of one that runs meanwhile."""
        proxy = self.cloud.server("console-proxy", "moorage-console-proxy", free_port())
        proxy.start()
        try:
            yield proxy.port
        finally:
            proxy.end()

    def wait(self, server: str, status: str) -> None:
        wait_until(lambda: self.show(server)["status"] == status, f"the server to be {status}", 120)

    def tenant_network(self, name: str, number: int, **fields: Any) -> Any:
        """One of the ordinary user's project, on a VLAN that the switches know."""
        network = self.admin.network.create_network(
            name=name,
            project_id=self.lab.demo.project_id,
            provider_network_type="vlan",
            provider_physical_network="physnet1",
            provider_segmentation_id=100 + number,
            **fields,
        )
        self.admin.network.create_subnet(
            network_id=network.id,
            project_id=self.lab.demo.project_id,
            ip_version=4,
            cidr=f"10.20.{number}.0/24",
        )
        return network

    def tenant_port(self, network: str) -> Any:
        """A port that the ordinary user made."""
        demo = self.lab.connect(self.lab.demo).network
        return demo.create_port(
            network_id=demo.find_network(network, ignore_missing=False).id, name="brought"
        )

    def ports_of(self, server_id: str) -> dict[str, Any]:
        """By the name of their network."""
        names = {network.id: network.name for network in self.admin.network.networks()}
        return {names[port.network_id]: port for port in self.admin.network.ports(device_id=server_id)}

    def vifs(self, node: str) -> set[str]:
        return {vif["id"] for vif in self.metal.ask("GET", f"nodes/{node}/vifs")["vifs"]}

    def node_of(self, server_id: str) -> dict[str, Any]:
        (found,) = [node for node in self.metal.all().values() if node["instance_uuid"] == server_id]
        return found

    def create(self, command: str) -> str:
        """The server that `openstack server create` makes, once it is there."""
        made = str(self.ask(f"server create --flavor {FLAVOR} --image {IMAGE} {command}")["id"])
        wait_until(lambda: self._settled(made), "the server to be built", 180)
        shown = self.show(made)
        assert shown["status"] == "ACTIVE", f"{shown}\n{self.cloud.logs()}"
        return made

    def _settled(self, server: str) -> bool:
        return self.show(server)["status"] in ("ACTIVE", "ERROR")

    def show(self, server: str) -> dict[str, Any]:
        """As an administrator sees it."""
        shown: dict[str, Any] = self.cloud.get(f"/v2.1/servers/{server}")["server"]
        return shown

    def network_data(self, node: str) -> dict[str, Any]:
        """What the config drive on a machine says; Ironic's API does not show it, its database does."""
        with sa.create_engine(self.cloud.database.database_url("ironic")).connect() as connection:
            row = sa.text("SELECT instance_info FROM nodes WHERE uuid = :uuid")
            info = json.loads(connection.execute(row, {"uuid": node}).scalar_one())
        disk = pycdlib.PyCdlib()
        disk.open_fp(io.BytesIO(gzip.decompress(base64.b64decode(info["configdrive"]))))
        written = io.BytesIO()
        disk.get_file_from_iso_fp(written, rr_path="/openstack/latest/network_data.json")
        told: dict[str, Any] = json.loads(written.getvalue())
        return told


def console_log(directory: Path, machine: str) -> Path:
    return directory / f"console-{machine}.log"


@contextmanager
def running(directory: Path) -> Iterator[NetworkedSite]:
    """Raises `debian.Unavailable` without a broker."""
    metal_directory = directory / "ironic"
    metal_directory.mkdir()
    with (
        rabbitmq.room() as broker,
        postgres.start() as database,
        openstack_service.start(directory / "openstack", {}) as lab,
    ):
        own = lab.connect(lab.moorage).network.create_network(name=OWN_NETWORK)
        assert own.id
        with ironic.running(metal_directory, database, (GROUP,), beside=OpenStackBeside(lab)) as metal:
            lab.keystone.add_service("baremetal", "baremetal", metal.url)
            told = {
                **credentials(lab.keystone, lab.moorage),
                "partition_key": GROUP,
                "poll_interval": "0.3",
                "console_log": str(console_log(directory, "{name}")),
            }
            shape = NetworkedShape(ironic={"ironic": told})
            cloud = Deployment(directory, database, broker, shape, MetalNeighbours(lab))
            for number in range(shape.machines):
                enrol(metal, number)
            try:
                cloud.start()
                nothing_else = {f"resources:{name}": "0" for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
                cloud.make_flavor(FLAVOR, {**nothing_else, "resources:CUSTOM_GOLD": "1"})
                yield NetworkedSite(cloud, lab, metal)
            finally:
                cloud.stop()


def enrol(metal: Nodes, number: int) -> str:
    """A machine with a bond of two ports, and a third port, each with its place at a switch."""
    node = metal.enrol(
        f"a-{number}",
        GROUP,
        console_interface="lab",
        driver_info={"lab_console_port": free_port()},
        boot_interface="pxe",
        deploy_interface="ramdisk",
        network_interface="neutron",
        rescue_interface="lab",
        automated_clean=False,
    )
    bond = metal.ask("POST", "portgroups", {"node_uuid": node, "address": mac(number, 0), "mode": "802.3ad"})
    for index in (1, 2, 3):
        bonded = {} if index == 3 else {"portgroup_uuid": bond["uuid"]}
        metal.ask(
            "POST",
            "ports",
            {
                "node_uuid": node,
                "address": mac(number, index),
                "physical_network": "physnet1",
                "local_link_connection": {
                    "switch_id": f"02:00:00:00:00:{number:02x}",
                    "port_id": f"Ethernet1/{index}",
                    "switch_info": f"rack-{number}",
                },
                **bonded,
            },
        )
    return node


def mac(number: int, index: int) -> str:
    """Of a machine's bond (0) or of one of its ports."""
    return f"52:54:00:aa:{number:02x}:{index:02x}"
