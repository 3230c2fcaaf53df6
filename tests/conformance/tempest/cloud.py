"""A cloud in pieces with two simulated hosts, beside a real Keystone, Neutron and Glance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from openstack.connection import Connection

from tests.integration.real_neighbours import RealNeighbours
from tests.lab.openstack import service as openstack
from tests.lab.openstack.service import OpenStack
from tests.support.deployment import Deployment, Shape, running
from tests.support.processes import free_port
from tests.support.profiles import Settings

SHAPE = Shape(shared_nodes=1, exclusive_nodes=0, apis=1)
WHOLE = "1000"
"""Tempest takes the first page of a list for all of it."""
PUBLIC = "public"


@dataclass(frozen=True)
class Cloud:
    """What Tempest has to be told of it."""

    deployment: Deployment
    lab: OpenStack
    images: tuple[str, str]
    flavors: tuple[str, str]
    """The second is the larger one."""
    public_network: str


class Neighbours(RealNeighbours):
    def __init__(self, lab: OpenStack) -> None:
        super().__init__(lab, SHAPE.hosts)
        self.console_port = free_port()

    def server_sections(self) -> Settings:
        """The usual quotas; and the machine may be busy."""
        told = super().server_sections()
        return {
            **told,
            "network": {**told["network"], "plug_timeout": "120"},
            "consoles": {"base_url": f"http://127.0.0.1:{self.console_port}"},
            "quota": {},
        }


@contextmanager
def started(directory: Path) -> Iterator[Cloud]:
    """Raises `debian.Unavailable` without a broker."""
    with openstack.start(directory / "openstack", {}, page=WHOLE) as lab:
        neighbours = Neighbours(lab)
        with running(directory, SHAPE, neighbours) as deployment:
            consoles = deployment.server("console-proxy", "moorage-console-proxy", neighbours.console_port)
            consoles.start()
            try:
                yield _furnished(deployment, lab)
            finally:
                consoles.kill()


def _furnished(deployment: Deployment, lab: OpenStack) -> Cloud:
    admin = lab.connect(lab.keystone.admin)
    return Cloud(
        deployment,
        lab,
        images=(_image(admin, "first"), _image(admin, "second")),
        flavors=(_flavor(admin, "small", 64, 1), _flavor(admin, "large", 128, 2)),
        public_network=_public_network(admin),
    )


def _image(admin: Connection, name: str) -> str:
    made = admin.image.create_image(
        name=name, data=b"0" * 1024, disk_format="raw", container_format="bare", visibility="public"
    )
    return str(made.id)


def _flavor(admin: Connection, name: str, ram: int, disk: int) -> str:
    return str(admin.compute.create_flavor(name=name, ram=ram, vcpus=1, disk=disk).id)


def _public_network(admin: Connection) -> str:
    """Where floating addresses come from."""
    network = admin.network.create_network(
        name=PUBLIC,
        is_router_external=True,
        provider_network_type="flat",
        provider_physical_network="physnet0",
    )
    admin.network.create_subnet(
        network_id=network.id, ip_version=4, cidr="172.24.4.0/24", is_dhcp_enabled=False
    )
    return str(network.id)
