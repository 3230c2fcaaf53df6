"""Moorage beside a real Keystone, Glance and Neutron with OVN, and real guests on hosts of a libvirt lab."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openstack.connection import Connection

from tests.integration.clouds import keystone_clouds
from tests.integration.libvirt.cloud_guests import GuestCloud, address_of
from tests.integration.libvirt.guest_site import GENTLE
from tests.integration.openstack_neighbours import OpenStackNeighbours
from tests.lab.libvirt import hosts
from tests.lab.libvirt.hosts import LibvirtHost, LibvirtLab
from tests.lab.openstack import service
from tests.lab.openstack.service import OpenStack
from tests.lab.openstack.settings import credentials
from tests.lab.ovn import central, chassis, metadata
from tests.support import guest_deployment
from tests.support.deployment import Deployment
from tests.support.guest_deployment import GuestDeployment, GuestShape
from tests.support.guest_image import GuestImage
from tests.support.processes import wait_until
from tests.support.profiles import Settings

PATIENCE = 120
NETWORK, CIDR = "private", "192.168.7.0/24"


class OvnNeighbours(OpenStackNeighbours):
    """Agents fetch images from Glance themselves."""

    def server_sections(self) -> Settings:
        told = super().server_sections()
        return {**told, "network": {**told["network"], "plug_timeout": str(PATIENCE)}}

    def agent_sections(self) -> Settings:
        itself = credentials(self.lab.keystone, self.lab.moorage)
        return {"network": {"provider": "neutron"}, "glance": itself}

    def image_id(self, deployment: Deployment) -> str:
        return ""  # users have their own


@dataclass
class OvnSite:
    deployment: GuestDeployment
    openstack: OpenStack
    operator: GuestCloud
    user: GuestCloud
    """Somebody without rights, to whom all servers belong."""
    neutron: Connection
    """As an administrator."""
    network_id: str

    @property
    def lab(self) -> LibvirtLab:
        return self.deployment.lab

    def host_of(self, name: str) -> LibvirtHost:
        """Users are not told."""
        shown = self.operator.show(self.user.show(name)["id"])
        return self.lab.hosts[str(shown["OS-EXT-SRV-ATTR:host"])]

    def other_host(self, than: LibvirtHost) -> LibvirtHost:
        [other] = [host for host in self.lab.hosts.values() if host is not than]
        return other

    def address(self, name: str) -> str:
        return address_of(self.user.show(name))

    def ssh(self, name: str, command: str, *, check: bool = True) -> str:
        """From the host that the guest is on, and there from the network's own namespace."""
        inside = ("ip", "netns", "exec", metadata.namespace_of(self.network_id))
        return self.user.ssh(self.host_of(name), self.address(name), command, inside=inside, check=check)

    def ports(self, server_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get(f"/ports?device_id={server_id}")["ports"]
        return found

    def bindings(self, port_id: str) -> dict[str, str]:
        """Their status, by host."""
        listed = self._get(f"/ports/{port_id}/bindings")["bindings"]
        return {each["host"]: each["status"] for each in listed}

    def _get(self, path: str) -> Any:
        answer = self.neutron.network.get(path)
        assert answer.ok, answer.text
        return answer.json()


@contextmanager
def running(directory: Path, image: GuestImage) -> Iterator[OvnSite]:
    """`debian.Unavailable` where what it needs can neither be found nor installed."""
    central.install()
    metadata.install()
    with ExitStack() as stack:
        lab = stack.enter_context(hosts.running(directory / "lab", ("h1", "h2"), connected=True))
        databases = stack.enter_context(central.running(directory / "central", lab.gateway))
        stack.enter_context(chassis.running(lab, databases))
        openstack = stack.enter_context(service.start(directory / "openstack", {}, databases))
        shape = GuestShape(
            conductors=1,
            names=tuple(lab.hosts),
            for_users=True,
            # Open vSwitch works without the kernel here.
            options=tuple({**GENTLE, "guest_offloads": "false"}.items()),
        )
        ports = (openstack.keystone.port, openstack.ports["glance"])
        made = stack.enter_context(
            guest_deployment.running_on(lab, directory, shape, OvnNeighbours(openstack), ports)
        )
        for host in lab.hosts.values():
            metadata.start(host, databases, made.metadata_port, made.metadata_secret)
        yield _furnished(made, openstack, image)


def _furnished(made: GuestDeployment, openstack: OpenStack, image: GuestImage) -> OvnSite:
    """With what a user needs to boot guests that can be reached by SSH."""
    neutron, directory = openstack.connect(openstack.moorage), made.directory
    wait_until(lambda: hosts_known(neutron) >= set(made.lab.hosts), "Neutron to know the hosts", PATIENCE)
    clouds = directory / "clouds.yaml"
    clouds.write_text(keystone_clouds(openstack.keystone, openstack.moorage, openstack.demo))
    operator, user = (
        GuestCloud(clouds, directory, each.name) for each in (openstack.moorage, openstack.demo)
    )
    operator.add_flavor()
    operator.add_image(image)
    user.add_key()
    network = user.ask("network", "create", NETWORK)["id"]
    user.order("subnet", "create", "--network", NETWORK, "--subnet-range", CIDR, NETWORK)
    user.order("security", "group", "rule", "create", "--protocol", "tcp", "--dst-port", "22", "default")
    user.order("server", "group", "create", "--policy", "soft-anti-affinity", "apart")
    return OvnSite(made, openstack, operator, user, neutron, network)


def hosts_known(admin: Connection) -> set[str]:
    """Those that live; OVN's come on one page, but with a link to a next one that has the same."""
    listed = admin.network.get("/agents").json()["agents"]
    return {agent["host"] for agent in listed if agent["alive"]}
