"""`moorage up` with two simulated hosts, beside a real Keystone, Neutron and Glance."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from openstack.connection import Connection

from tests.integration import openstack_site
from tests.lab.openstack.service import OpenStack
from tests.support.profiles import Settings

HOSTS = {"fake-1": "physnet1", "fake-2": "physnet1"}
WHOLE = "1000"
"""Tempest takes the first page of a list for all of it."""
PUBLIC = "public"

_SETTINGS: Settings = {
    "network": {"provider": "neutron", "plug_timeout": "120"},
    "conductor": {},
    "fake": {},
    "quota": {},
}
"""As an operator has them; and the machine may be busy."""


@dataclass(frozen=True)
class Cloud:
    """What Tempest has to be told of it."""

    lab: OpenStack
    images: tuple[str, str]
    flavors: tuple[str, str]
    """The second is the larger one."""
    public_network: str
    network_extensions: tuple[str, ...]


@contextmanager
def started(directory: Path) -> Iterator[Cloud]:
    with openstack_site.running(directory, HOSTS, _SETTINGS, WHOLE) as site:
        admin = site.lab.connect(site.lab.keystone.admin)
        yield Cloud(
            site.lab,
            images=(site.image_id, openstack_site.make_image(admin)),
            flavors=(_flavor(admin, "small", 64, 1), _flavor(admin, "large", 128, 2)),
            public_network=_public_network(admin),
            network_extensions=tuple(str(one.alias) for one in admin.network.extensions()),
        )


def _flavor(admin: Connection, name: str, ram: int, disk: int) -> str:
    return str(admin.compute.create_flavor(name=name, ram=ram, vcpus=1, disk=disk).id)


def _public_network(admin: Connection) -> str:
    """The way out of networks that Neutron makes by itself, which take their addresses from the pool."""
    admin.network.create_subnet_pool(
        name="default",
        prefixes=["10.240.0.0/16"],
        default_prefix_length=26,
        is_shared=True,
        is_default=True,
    )
    network = admin.network.create_network(
        name=PUBLIC,
        is_router_external=True,
        is_default=True,
        provider_network_type="flat",
        provider_physical_network="physnet0",
    )
    admin.network.create_subnet(
        network_id=network.id, ip_version=4, cidr="172.24.4.0/24", is_dhcp_enabled=False
    )
    return str(network.id)
